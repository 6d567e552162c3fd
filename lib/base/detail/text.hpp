// SPDX-License-Identifier: BSD-3-Clause
// Helpers for texts, and for errors about them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "rankmesh/base/detail/suggest.hpp"

namespace rankmesh::detail {

/// Copies a text into zeroed memory. The text is truncated so that a zero byte follows it.
template <std::size_t size>
void copy_text(char (&to)[size], std::string_view text) {
  std::memcpy(to, text.data(), std::min(text.size(), size - 1));
}

/// Begins the line of a hint that contains the diagnosis of the records of the node. The hints of
/// ranks that fail for the same reason differ only after this mark.
inline constexpr std::string_view diagnosis_mark = "\n  diagnosis of this node: ";

/// Returns "1 rank" or "2 ranks".
std::string count_text(std::integral auto count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

/// Returns the name of an enumerator, of names in the order of the enumeration; "?" if it has none.
constexpr std::string_view name_in(std::initializer_list<std::string_view> names, auto enumerator) {
  const auto place = static_cast<std::size_t>(enumerator);
  return place < names.size() ? names.begin()[place] : "?";
}

/// Returns a few characters around `position`. Unprintable characters become '?', and "..." marks
/// an end that was cut.
std::string excerpt(std::string_view text, std::size_t position);

}  // namespace rankmesh::detail

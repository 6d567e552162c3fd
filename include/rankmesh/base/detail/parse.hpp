// SPDX-License-Identifier: BSD-3-Clause
// Reads numbers, and lists with separators.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace rankmesh::detail {

/// Returns the number that the whole text is; nothing if it is none, or too large.
template <class Number = std::int64_t>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  return error == std::errc{} && end == last ? std::optional{number} : std::nullopt;
}

/// Returns the parts of a text between separators. An empty text has one empty part.
template <class Text = std::string_view>
std::vector<Text> split(std::string_view text, char separator) {
  std::vector<Text> parts;
  for (;;) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace rankmesh::detail

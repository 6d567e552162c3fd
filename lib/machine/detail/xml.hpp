// SPDX-License-Identifier: BSD-3-Clause
// The elements of an XML text: what hwloc and NCCL write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankmesh::detail {

/// An element with its attributes. Elements are stored in the order of the text, each behind its
/// parent.
struct XmlElement {
  static constexpr std::size_t no_parent = SIZE_MAX;

  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes{};
  std::string text{};  ///< the characters between the tags, without those of inner elements
  std::size_t parent = no_parent;
  std::int64_t line = 0;

  /// Returns the value of an attribute, or an empty text.
  [[nodiscard]] std::string_view get(std::string_view name) const;
};

/// Reads the elements.
/// @throws SpecError with the place and the reason.
std::vector<XmlElement> read_xml(std::string_view text, std::string_view origin);

}  // namespace rankmesh::detail

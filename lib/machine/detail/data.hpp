// SPDX-License-Identifier: BSD-3-Clause
// Nested data as it was written: JSON, and the part of YAML that configuration files use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankmesh::detail {

/// A value of a JSON or YAML text, with its line.
struct Data {
  enum class Kind : std::uint8_t { text, list, map };
  Kind kind = Kind::text;
  std::string text{};          ///< of a scalar, without its quotes
  std::string key{};           ///< of a value in a map
  std::vector<Data> items{};   ///< of a list
  std::vector<Data> fields{};  ///< of a map, in the order of the text
  std::int64_t line = 0;

  /// Returns the value of a field, or null.
  [[nodiscard]] const Data* find(std::string_view wanted) const;
};

/// Reads JSON or YAML. Aliases, texts that are nested deeper than 64 levels and second documents
/// are refused.
/// @throws SpecError with the place and the reason.
Data read_data(std::string_view text, std::string_view origin);

}  // namespace rankmesh::detail

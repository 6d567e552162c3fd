// SPDX-License-Identifier: BSD-3-Clause
// The short names of element types, as safetensors writes them in capitals.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "rankmesh/base/data_type.hpp"

namespace rankmesh::detail {

// In the order of DataType.
inline constexpr std::array<std::string_view, 14> short_names{
    "i8",  "u8",  "i16",  "u16", "i32", "u32",     "i64",
    "u64", "f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2"};

constexpr std::string_view short_name(DataType type) {
  return short_names[static_cast<std::size_t>(type)];
}

/// Returns the type with a short name or a name of to_string(), or nothing.
inline std::optional<DataType> type_named(std::string_view name) {
  for (std::size_t t = 0; t < short_names.size(); ++t)
    if (name == short_names[t] || name == to_string(static_cast<DataType>(t)))
      return static_cast<DataType>(t);
  return std::nullopt;
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Copies, converts and adds runs of elements. Addresses inside messages need not be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rankmesh/base/data_type.hpp"

namespace rankmesh::exchange::detail {

/// Stores `count` elements, converted if the types differ. A conversion rounds to the nearest
/// value, ties to even.
void store_elements(std::byte* to, DataType to_type, const std::byte* from, DataType from_type,
                    std::int64_t count);

/// Adds `count` elements to the elements at `to`. `to_type` is an integer, float32 or float64.
void add_elements(std::byte* to, DataType to_type, const std::byte* from, DataType from_type,
                  std::int64_t count);

/// Copies `count` runs of `bytes` bytes. The runs begin `to_step` and `from_step` bytes apart.
inline void copy_runs(std::byte* to, std::int64_t to_step, const std::byte* from,
                      std::int64_t from_step, std::size_t bytes, std::int64_t count) {
  // The compiler replaces copies of a known size by a load and a store.
  const auto copy_all = [&](auto size) {
    for (std::int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * to_step, from + i * from_step, size());
  };
  switch (bytes) {
    case 2:
      return copy_all([] { return std::size_t{2}; });
    case 4:
      return copy_all([] { return std::size_t{4}; });
    case 8:
      return copy_all([] { return std::size_t{8}; });
    case 16:
      return copy_all([] { return std::size_t{16}; });
    case 32:
      return copy_all([] { return std::size_t{32}; });
    default:
      return copy_all([=] { return bytes; });
  }
}

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// Describes the memory of a call: a pointer, a memory kind, an element type and a 64-bit count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/base/symmetric_window.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

/// Says whether memory is on the host or on a device. What describes the memory of an argument
/// (MemoryOf) says which: a std::span or a container is host memory, and a DeviceSpan is device
/// memory. rankmesh never guesses the kind from a pointer.
enum class MemoryKind : std::uint8_t { host, device };
/// Returns "host" or "device".
RANKMESH_API std::string_view to_string(MemoryKind kind);

/// A view of contiguous memory that stores its element type and its kind as values instead of
/// template arguments. `Byte` is `const std::byte` for inputs and `std::byte` for outputs. The view
/// does not own the memory.
template <class Byte>
struct BasicBuffer {
  Byte* data = nullptr;                     ///< The address of the first element.
  std::int64_t count = 0;                   ///< The number of elements.
  DataType type = DataType::uint8;          ///< The type of the elements.
  MemoryKind kind = MemoryKind::host;       ///< The kind of the memory.
  const SymmetricWindow* window = nullptr;  ///< the window of symmetric memory, or null

  /// Returns the size in bytes.
  [[nodiscard]] std::int64_t bytes() const {
    return count * static_cast<std::int64_t>(size_of(type));
  }
  /// Returns the `n` elements that begin at element `offset`. Bounds are not checked.
  [[nodiscard]] BasicBuffer slice(std::int64_t offset, std::int64_t n) const {
    return {data == nullptr ? nullptr : data + offset * static_cast<std::int64_t>(size_of(type)), n,
            type, kind, window};
  }
  /// Returns an input buffer over the same memory.
  [[nodiscard]] BasicBuffer<const std::byte> as_input() const {
    return {data, count, type, kind, window};
  }
};
using Buffer = BasicBuffer<std::byte>;
using ConstBuffer = BasicBuffer<const std::byte>;

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// How a call describes typed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh::detail {

/// True if an argument of type M only refers to memory, as an lvalue, a span or a DeviceSpan does.
/// False for a container that is moved into the call.
template <class M>
inline constexpr bool is_borrowed =
    std::is_lvalue_reference_v<M> || ownership_of<M>() != Ownership::owned;

/// True if the memory is ordinary: it is host memory, it is not symmetric, and the transports
/// support the operation on its element type without a scratch call.
template <Operation operation, class M>
inline constexpr bool is_ordinary =
    HostMemory<M> && !HasWindow<M> &&
    !(reduces(operation) && is_narrow_float(ElementUnits<ElementOf<M>>::type));

/// The number of elements of the buffer that represent one element of the memory M.
template <class M>
inline constexpr std::size_t units_of = ElementUnits<ElementOf<M>>::units;

/// The number of elements of the buffer that represent one innermost element of the memory M.
template <class M>
inline constexpr std::size_t units_per_leaf = ElementUnits<ElementOf<M>>::per_leaf;

/// Returns the blocks with all counts and displacements in units.
/// @param of_element  The units of an element, which Blocks count.
/// @param of_leaf     The units of an innermost element, which a SlicedAxis counts.
RANKMESH_API Blocks scaled(const Blocks& blocks, std::size_t of_element, std::size_t of_leaf);

/// Returns the blocks with all counts and displacements, counted as buffer_of(M) counts elements.
template <class M>
decltype(auto) blocks_in(const Blocks& blocks) {
  if constexpr (units_of<M> == 1)
    return (blocks);
  else
    return scaled(blocks, units_of<M>, units_per_leaf<M>);
}

/// Returns the address of an object, which may be a temporary of the expression that issues a call.
template <class T>
const T* address_of(const T& object) {
  return std::addressof(object);
}

/// Throws UsageError if `op` cannot combine complex numbers.
RANKMESH_API void require_complex(ReduceOp op);

/// Returns a view of one value.
template <class T>
std::span<T, 1> one(T& value) {
  return std::span<T, 1>{std::addressof(value), 1};
}

}  // namespace rankmesh::detail

namespace rankmesh::calls {

/// Returns the memory as an input buffer.
template <class M>
ConstBuffer input(M& memory) {
  const auto buffer = buffer_of(memory);
  return {buffer.data, buffer.count, buffer.type, buffer.kind, buffer.window};
}

/// Returns the memory as a buffer of bytes. If the number of bytes would overflow, the result is a
/// buffer that every coordinator refuses as too large.
template <class M>
auto bytes_of(M& values) {
  constexpr std::size_t size = sizeof(ElementOf<M>);
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const std::size_t count = rankmesh::detail::elements_of(values);
  const bool overflows = count > static_cast<std::uint64_t>(largest) / size;
  auto buffer = rankmesh::detail::buffer_of_first(values, 0);
  buffer.type = DataType::uint8;
  buffer.count = overflows ? largest : static_cast<std::int64_t>(count * size);
  return buffer;
}

}  // namespace rankmesh::calls

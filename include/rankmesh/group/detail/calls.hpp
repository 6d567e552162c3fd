// SPDX-License-Identifier: BSD-3-Clause
// Creates calls from typed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <ranges>
#include <type_traits>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// True if an argument of type M only refers to memory, as an lvalue, a span or a DeviceSpan does.
/// False for a container that is moved into the call.
template <class M>
inline constexpr bool is_borrowed =
    std::is_lvalue_reference_v<M> || is_device_span<std::remove_cvref_t<M>> ||
    std::ranges::borrowed_range<std::remove_cvref_t<M>>;

/// True if the memory is ordinary: it is host memory, it is not symmetric, and the transports
/// support the operation on its element type without a scratch call.
template <Operation operation, class M>
inline constexpr bool is_ordinary =
    !is_device_span<std::remove_cvref_t<M>> && !is_symmetric_span<std::remove_cvref_t<M>> &&
    !(reduces(operation) && is_narrow_float(ElementUnits<ElementOf<M>>::type));

/// The number of elements of the buffer that represent one element of the memory M.
template <class M>
inline constexpr std::size_t units_of = ElementUnits<ElementOf<M>>::units;

/// The number of elements of the buffer that represent one innermost element of the memory M.
template <class M>
inline constexpr std::size_t units_per_leaf = ElementUnits<ElementOf<M>>::per_leaf;

/// Returns the blocks with all counts and displacements multiplied by `units`.
RANKMESH_API Blocks scaled(const Blocks& blocks, std::size_t units);

/// Returns the blocks of the memory M, counted as buffer_of(M) counts elements.
template <class M>
decltype(auto) blocks_in(const Blocks& blocks) {
  if constexpr (units_of<M> == 1)
    return (blocks);
  else
    return scaled(blocks, units_of<M>);
}

/// Throws UsageError if `op` cannot combine complex numbers.
RANKMESH_API void require_complex(ReduceOp op);

/// Returns `op` if it can combine the elements of M.
template <class M>
ReduceOp accepted(ReduceOp op) {
  if constexpr (is_complex<LeafOf<ElementOf<M>>>) require_complex(op);
  return op;
}

}  // namespace rankmesh::detail

namespace rankmesh::calls {

/// Returns the memory as an input buffer.
template <class M>
ConstBuffer input(M& memory) {
  const auto buffer = buffer_of(memory);
  return {buffer.data, buffer.count, buffer.type, buffer.kind, buffer.window};
}

/// Returns the call of a broadcast. Each function below returns the call of the operation that the
/// function is named after. The buffers of all these calls refer to the memory of the arguments.
template <class Out>
Call broadcast(Out& values, RankInGroup root, StreamRef stream) {
  return {
      .operation = Operation::broadcast, .out = buffer_of(values), .root = root, .stream = stream};
}

/// Returns the call of an operation that has an input and an output, but no root.
template <class In, class Out>
Call two(Operation operation, In& in, Out& out, StreamRef stream) {
  return {.operation = operation, .in = input(in), .out = buffer_of(out), .stream = stream};
}

/// Returns the call of gather or scatter.
template <class In, class Out>
Call rooted(Operation operation, In& in, Out& out, RankInGroup root, StreamRef stream) {
  return {.operation = operation,
          .in = input(in),
          .out = buffer_of(out),
          .root = root,
          .stream = stream};
}

template <class In, class Out>
Call all_reduce(In& in, Out& out, ReduceOp op, StreamRef stream) {
  return {.operation = Operation::all_reduce,
          .reduction = detail::accepted<Out>(op),
          .in = input(in),
          .out = buffer_of(out),
          .stream = stream};
}

/// Returns the call of a scan, in place.
template <class M>
Call scan(Operation operation, M& values, ReduceOp op) {
  return {.operation = operation,
          .reduction = detail::accepted<M>(op),
          .in = input(values),
          .out = buffer_of(values)};
}

template <class In, class Out>
Call reduce(In& in, Out& out, RankInGroup root, ReduceOp op, StreamRef stream) {
  return {.operation = Operation::reduce,
          .reduction = detail::accepted<Out>(op),
          .in = input(in),
          .out = buffer_of(out),
          .root = root,
          .stream = stream};
}

/// Returns the memory as a buffer of bytes. If the number of bytes would overflow, the result is a
/// buffer that every coordinator refuses as too large.
template <class M>
auto bytes_of(M& values) {
  auto* data = std::ranges::data(values);
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto count = static_cast<std::uint64_t>(std::ranges::size(values));
  const bool overflows = count > static_cast<std::uint64_t>(largest) / sizeof(*data);
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(data)>>,
                                  const std::byte, std::byte>;
  return BasicBuffer<Byte>{reinterpret_cast<Byte*>(data),
                           overflows ? largest : static_cast<std::int64_t>(count * sizeof(*data))};
}

/// Returns the call of a user's reduction. The counts of its buffers are in bytes.
template <class In, class Out>
Call user(Operation operation, In& in, Out& out, RankInGroup root, UserReduction& reduction) {
  return {.operation = operation,
          .in = bytes_of(in).as_input(),
          .out = bytes_of(out),
          .user = &reduction,
          .root = root};
}

template <class In, class Out>
Call reduce_scatter(In& in, Out& out, ReduceOp op, StreamRef stream) {
  return {.operation = Operation::reduce_scatter,
          .reduction = detail::accepted<Out>(op),
          .in = input(in),
          .out = buffer_of(out),
          .stream = stream};
}

/// Returns the call of all_gather_v or gather_v. The blocks must exist until the call is issued.
/// Transports keep no reference to the blocks.
template <class In, class Out>
Call blocks_of_out(Operation operation, In& in, Out& out, const Blocks& blocks, RankInGroup root,
                   StreamRef stream) {
  Call call = rooted(operation, in, out, root, stream);
  call.out_blocks = &blocks;
  return call;
}

/// Returns the call of reduce_scatter_v or scatter_v.
template <class In, class Out>
Call blocks_of_in(Operation operation, In& in, Out& out, const Blocks& blocks, RankInGroup root,
                  ReduceOp op, StreamRef stream) {
  Call call = rooted(operation, in, out, root, stream);
  call.reduction = detail::accepted<Out>(op);
  call.in_blocks = &blocks;
  return call;
}

template <class In, class Out>
Call all_to_all_v(In& in, Out& out, const Blocks& in_blocks, const Blocks& out_blocks,
                  StreamRef stream) {
  Call call = two(Operation::all_to_all, in, out, stream);
  call.in_blocks = &in_blocks;
  call.out_blocks = &out_blocks;
  return call;
}

template <class In>
Call send(In& values, RankInGroup to, int tag, StreamRef stream) {
  return {.operation = Operation::send,
          .tag = tag,
          .in = input(values),
          .destination = to,
          .stream = stream};
}

template <class Out>
Call recv(Out& values, RankInGroup from, int tag, StreamRef stream) {
  return {.operation = Operation::recv,
          .tag = tag,
          .out = buffer_of(values),
          .source = from,
          .stream = stream};
}

template <class In, class Out>
Call send_recv(In& in, Out& out, RankInGroup to, RankInGroup from, int tag, StreamRef stream) {
  return {.operation = Operation::send_recv,
          .tag = tag,
          .in = input(in),
          .out = buffer_of(out),
          .destination = to,
          .source = from,
          .stream = stream};
}

}  // namespace rankmesh::calls

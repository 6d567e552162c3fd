// SPDX-License-Identifier: BSD-3-Clause
// Reduces values, and gives each member a block of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"
#include "rankmesh/group/returned.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh {

/// reduce_scatter() reduces the `in` of all members element by element, and gives block k of the
/// result to member k. `in` has size() times as many elements as `out`. Blocks follow each other,
/// or lie along an axis of an array. Collective over the group. all_reduce() says which functions
/// can replace the ReduceOp.
///
/// In reduce_scatter_v(), the blocks may have different sizes: `blocks` is a
/// rankmesh::Blocks, a SlicedAxis, or a list of counts such as a std::vector. Every member passes
/// the sizes of all blocks, and all members must pass the same sizes. Sizes are counted in elements
/// of the divided buffer. If the buffer is an array of two dimensions, each row counts as one
/// element.
template <bool forms_only = false>
class ReduceScatter : public detail::OperationForms<Operation::reduce_scatter> {
 public:
  /// Reduces `in`.
  template <Memory In, ReducedOutputOf<In> Out>
  void reduce_scatter(In&& in, Out&& out, OrStream<ReduceOp> op = ReduceOp::sum,
                      StreamRef stream = {}) {
    run(in, out, {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Reduces `in` with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  void reduce_scatter(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    run_user(in, out, combine, commutative);
  }
  /// Reduces arrays. Member k gets block k along the axis.
  /// @param in   A whole array.
  /// @param out  This member's block, with the shape of the axis.
  template <Memory In, ReducedOutputOf<In> Out>
  void reduce_scatter(In&& in, Out&& out, const Axis& axis, OrStream<ReduceOp> op = ReduceOp::sum,
                      StreamRef stream = {}) {
    run_any(in, out, {.reduction = op.value(), .stream = op.stream_or(stream)}, &axis);
  }
  /// Reduces `in` in host memory, and returns this member's block. The number of elements of `in`
  /// must be a multiple of size().
  template <HostMemory In>
    requires ReducibleMemory<In>
  [[nodiscard]] Returned<In> reduce_scatter(In&& in, ReduceOp op = ReduceOp::sum) {
    return detail::returned<In>(detail::elements_of(in) / issuer().size(),
                                [&](auto out) { reduce_scatter(in, out, op); });
  }
  /// Starts reduce_scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, ReducedOutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> reduce_scatter_async(In&& in, Out&& out,
                                                 OrStream<ReduceOp> op = ReduceOp::sum,
                                                 StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Does the same with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  [[nodiscard]] WorkOn<Out> reduce_scatter_async(In&& in, Out&& out, F&& combine,
                                                 Commutative commutative = Commutative::no) {
    return start_user(std::forward<In>(in), std::forward<Out>(out), combine, commutative);
  }
  /// Does the same along an axis.
  template <Memory In, ReducedOutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> reduce_scatter_async(In&& in, Out&& out, const Axis& axis,
                                                 OrStream<ReduceOp> op = ReduceOp::sum,
                                                 StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.reduction = op.value(), .stream = op.stream_or(stream)}, &axis);
  }

  /// Gives block k of the result to member k.
  template <Memory In, ReducedOutputOf<In> Out>
  void reduce_scatter_v(In&& in, Out&& out, const Blocks& blocks,
                        OrStream<ReduceOp> op = ReduceOp::sum, StreamRef stream = {}) {
    const auto& in_blocks = detail::blocks_in<In>(blocks);
    run_any(in, out,
            {.reduction = op.value(), .in_blocks = &in_blocks, .stream = op.stream_or(stream)});
  }
  /// Reduces `in` in host memory, and returns this member's block. If the elements are arrays, the
  /// blocks are no SlicedAxis.
  template <HostMemory In>
    requires ReducibleMemory<In>
  [[nodiscard]] Returned<In> reduce_scatter_v(In&& in, const Blocks& blocks,
                                              ReduceOp op = ReduceOp::sum) {
    require_sizes<In>(in, blocks);
    const auto k = static_cast<std::size_t>(issuer().self().value());
    return detail::returned<In>(static_cast<std::size_t>(blocks.counts()[k]),
                                [&](auto out) { reduce_scatter_v(in, out, blocks, op); });
  }
  /// Starts reduce_scatter_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, ReducedOutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> reduce_scatter_v_async(In&& in, Out&& out, const Blocks& blocks,
                                                   OrStream<ReduceOp> op = ReduceOp::sum,
                                                   StreamRef stream = {}) {
    const auto& in_blocks = detail::blocks_in<In>(blocks);
    return start(
        std::forward<In>(in), std::forward<Out>(out),
        {.reduction = op.value(), .in_blocks = &in_blocks, .stream = op.stream_or(stream)});
  }

  RANKMESH_REFUSE_OTHERS(ReduceScatter, reduce_scatter)
  RANKMESH_REFUSE_OTHERS(ReduceScatter, reduce_scatter_v)
  RANKMESH_REFUSE_BRACES_OF_V(ReduceScatter, reduce_scatter_v)
  RANKMESH_REFUSE_BRACES_OF_V(ReduceScatter, reduce_scatter_v_async)
};

}  // namespace rankmesh

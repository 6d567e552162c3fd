// SPDX-License-Identifier: BSD-3-Clause
// Concatenates the values of all members on one member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/operations/all_gather.hpp"
#include "rankmesh/group/returned.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh {

/// gather() concatenates the `in` of all members at the root, in group order or along an axis of an
/// array. The root's `out` has size() times as many elements as `in`. On other members, `out` is
/// ignored. Collective over the group.
///
/// In gather_v(), the blocks may have different sizes: `blocks` is a
/// rankmesh::Blocks, a SlicedAxis, or a list of counts such as a std::vector. Every member passes
/// the sizes of all blocks, and all members must pass the same sizes. Sizes are counted in elements
/// of the divided buffer. If the buffer is an array of two dimensions, each row counts as one
/// element.
template <bool forms_only = false>
class Gather : public detail::OperationForms<Operation::gather> {
 public:
  /// Concatenates the values.
  template <Memory In, OutputOf<In> Out>
  void gather(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run(in, out, {.root = root, .stream = stream});
  }
  /// Concatenates blocks along an axis.
  /// @param in   This member's block, with the shape of the axis.
  /// @param out  The whole array.
  template <Memory In, OutputOf<In> Out>
  void gather(In&& in, Out&& out, const Axis& axis, RankInGroup root, StreamRef stream = {}) {
    run_any(in, out, {.root = root, .stream = stream}, &axis);
  }
  /// Concatenates values in host memory.
  /// @return The result at the root; an empty vector on all other members.
  template <HostMemory In>
  [[nodiscard]] Returned<In> gather(In&& in, RankInGroup root) {
    const std::size_t all = issuer().self() == root ? issuer().size() : 0;
    return detail::returned<In>(all * detail::elements_of(in),
                                [&](auto out) { gather(in, out, root); });
  }
  /// Returns one value of each member at the root, and an empty vector on all other members.
  template <Value T>
  [[nodiscard]] std::vector<T> gather(const T& value, RankInGroup root) {
    return gather(detail::one(value), root);
  }
  /// Starts gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> gather_async(In&& in, Out&& out, RankInGroup root,
                                         StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.root = root, .stream = stream});
  }
  /// Does the same along an axis.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> gather_async(In&& in, Out&& out, const Axis& axis, RankInGroup root,
                                         StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.root = root, .stream = stream},
                 &axis);
  }

  /// Copies `in` of member k to block k of the root's `out`.
  template <Memory In, OutputOf<In> Out>
  void gather_v(In&& in, Out&& out, const Blocks& blocks, RankInGroup root, StreamRef stream = {}) {
    const auto& out_blocks = detail::blocks_in<Out>(blocks);
    run_any(in, out, {.out_blocks = &out_blocks, .root = root, .stream = stream});
  }
  /// Concatenates values in host memory. Cost: an all_gather of 8 bytes per member before the
  /// values.
  /// @return The values and the sizes at the root. On all other members, only the sizes.
  template <HostMemory In>
  [[nodiscard]] ReturnedBlocks<In> gather_v(In&& in, RankInGroup root) {
    require_sizes<In>(in, {}, root);
    Blocks blocks{other<AllGather<>>().counts_of(in, detail::UserFunction::gather_v)};
    const std::size_t all = issuer().self() == root ? detail::total(blocks) : 0;
    auto values = detail::returned<In>(all, [&](auto out) { gather_v(in, out, blocks, root); });
    return {std::move(values), std::move(blocks)};
  }
  /// Starts gather_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> gather_v_async(In&& in, Out&& out, const Blocks& blocks,
                                           RankInGroup root, StreamRef stream = {}) {
    const auto& out_blocks = detail::blocks_in<Out>(blocks);
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.out_blocks = &out_blocks, .root = root, .stream = stream});
  }

  RANKMESH_REFUSE_OTHERS(Gather, gather)
  RANKMESH_REFUSE_OTHERS(Gather, gather_v)
  RANKMESH_REFUSE_BRACES(Gather, gather)
  RANKMESH_REFUSE_BRACES(Gather, gather_async)
  RANKMESH_REFUSE_BRACES_OF_V(Gather, gather_v)
  RANKMESH_REFUSE_BRACES_OF_V(Gather, gather_v_async)
};

}  // namespace rankmesh

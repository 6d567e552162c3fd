// SPDX-License-Identifier: BSD-3-Clause
// Gives each member a block of the values of one member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/operations/broadcast.hpp"
#include "rankmesh/group/returned.hpp"
#include "rankmesh/group/sliced_axis.hpp"

namespace rankmesh {

/// scatter() sends block k of the root's `in` to member k. The root's `in` has size() times as many
/// elements as `out`. On other members, `in` is ignored. Blocks follow each other, or lie along an
/// axis of an array. Collective over the group.
///
/// In scatter_v(), the blocks may have different sizes: `blocks` is a
/// rankmesh::Blocks, a SlicedAxis, or a list of counts such as a std::vector. Every member passes
/// the sizes of all blocks, and all members must pass the same sizes. Sizes are counted in elements
/// of the divided buffer. If the buffer is an array of two dimensions, each row counts as one
/// element.
template <bool forms_only = false>
class Scatter : public detail::OperationForms<Operation::scatter> {
 public:
  /// Sends the blocks.
  template <Memory In, OutputOf<In> Out>
  void scatter(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run(in, out, {.root = root, .stream = stream});
  }
  /// Sends blocks along an axis.
  /// @param in   The whole array.
  /// @param out  This member's block, with the shape of the axis.
  template <Memory In, OutputOf<In> Out>
  void scatter(In&& in, Out&& out, const Axis& axis, RankInGroup root, StreamRef stream = {}) {
    run_any(in, out, {.root = root, .stream = stream}, &axis);
  }
  /// Sends one value to each member, and returns this member's value. The root's `in` has size()
  /// elements.
  template <HostMemory In>
  [[nodiscard]] ValueOf<In> scatter(In&& in, RankInGroup root) {
    ValueOf<In> value{};
    scatter(in, detail::one(value), root);
    return value;
  }
  /// Starts scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> scatter_async(In&& in, Out&& out, RankInGroup root,
                                          StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.root = root, .stream = stream});
  }
  /// Does the same along an axis.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> scatter_async(In&& in, Out&& out, const Axis& axis, RankInGroup root,
                                          StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), {.root = root, .stream = stream},
                 &axis);
  }

  /// Sends block k of the root's `in` to member k.
  template <Memory In, OutputOf<In> Out>
  void scatter_v(In&& in, Out&& out, const Blocks& blocks, RankInGroup root,
                 StreamRef stream = {}) {
    const auto& in_blocks = detail::blocks_in<In>(blocks);
    run_any(in, out, {.in_blocks = &in_blocks, .root = root, .stream = stream});
  }
  /// Sends the blocks, and returns this member's block. The sizes of the blocks are those of the
  /// root; other members may pass `{}`. If the elements are arrays, no member passes a SlicedAxis.
  /// Cost: a broadcast of 8 bytes per member before the values.
  template <HostMemory In>
  [[nodiscard]] Returned<In> scatter_v(In&& in, const Blocks& blocks, RankInGroup root) {
    const bool is_root = issuer().self() == root;
    require_sizes<In>(in, blocks, root);
    const Blocks sizes = sizes_of(blocks, root);
    const auto k = static_cast<std::size_t>(issuer().self().value());
    return detail::returned<In>(static_cast<std::size_t>(sizes.counts()[k]), [&](auto out) {
      scatter_v(in, out, is_root ? blocks : sizes, root);
    });
  }
  /// Starts scatter_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> scatter_v_async(In&& in, Out&& out, const Blocks& blocks,
                                            RankInGroup root, StreamRef stream = {}) {
    const auto& in_blocks = detail::blocks_in<In>(blocks);
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.in_blocks = &in_blocks, .root = root, .stream = stream});
  }

  RANKMESH_REFUSE_OTHERS(Scatter, scatter)
  RANKMESH_REFUSE_OTHERS(Scatter, scatter_v)
  RANKMESH_REFUSE_BRACES_OF_V(Scatter, scatter_v)
  RANKMESH_REFUSE_BRACES_OF_V(Scatter, scatter_v_async)

 private:
  // Returns the root's sizes on all members.
  Blocks sizes_of(const Blocks& blocks, RankInGroup root) {
    std::vector<std::int64_t> counts = blocks.counts();
    counts.resize(issuer().size());  // other members may have passed none
    const detail::CalledBy by{issuer(), detail::UserFunction::scatter_v};
    other<Broadcast<>>().broadcast(std::span{counts}, root);
    return Blocks{counts};
  }
};

}  // namespace rankmesh

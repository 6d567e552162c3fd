// SPDX-License-Identifier: BSD-3-Clause
// Collectives with blocks of different sizes, like the v-forms of MPI.
#pragma once

#include <utility>

#include "rankmesh/group/axis_collectives.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh {

/// Adds the collectives whose blocks have different sizes (the v-forms of MPI). The argument
/// `blocks` is a rankmesh::Blocks, or a list of counts such as a std::vector. Every member passes
/// the sizes of all blocks, and all members must pass the same sizes. all_to_all_v is an
/// exception: a member passes only the sizes of the blocks that it sends and receives. For the
/// block that member a sends to member b, both members must pass the same size. Sizes are counted
/// in elements of the divided buffer. If the buffer is an array of two dimensions, each row counts
/// as one element.
class BlockCollectives : public AxisCollectives {
 public:
  /// Copies `in` of member k to block k of `out` on all members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather_v(In&& in, Out&& out, const Blocks& blocks, StreamRef stream = {}) {
    run(calls::blocks_of_out(Operation::all_gather, in, out, detail::blocks_in<Out>(blocks), {},
                             stream));
  }
  /// Starts all_gather_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_v_async(In&& in, Out&& out, const Blocks& blocks,
                                        StreamRef stream = {}) {
    decltype(auto) own = detail::blocks_in<Out>(blocks);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_out(Operation::all_gather, i, o, own, {}, stream);
    });
  }

  /// Reduces the `in` of all members element by element, and gives block k of the result to member
  /// k.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter_v(In&& in, Out&& out, const Blocks& blocks, ReduceOp op = ReduceOp::sum,
                        StreamRef stream = {}) {
    run(calls::blocks_of_in(Operation::reduce_scatter, in, out, detail::blocks_in<In>(blocks), {},
                            op, stream));
  }
  /// Starts reduce_scatter_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_v_async(In&& in, Out&& out, const Blocks& blocks,
                                            ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    decltype(auto) own = detail::blocks_in<In>(blocks);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_in(Operation::reduce_scatter, i, o, own, {}, op, stream);
    });
  }

  /// Copies `in` of member k to block k of the root's `out`. `out` is ignored on all other members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather_v(In&& in, Out&& out, const Blocks& blocks, RankInGroup root, StreamRef stream = {}) {
    run(calls::blocks_of_out(Operation::gather, in, out, detail::blocks_in<Out>(blocks), root,
                             stream));
  }
  /// Starts gather_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_v_async(In&& in, Out&& out, const Blocks& blocks, RankInGroup root,
                                    StreamRef stream = {}) {
    decltype(auto) own = detail::blocks_in<Out>(blocks);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_out(Operation::gather, i, o, own, root, stream);
    });
  }

  /// Sends block k of the root's `in` to member k. `in` is ignored on all other members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter_v(In&& in, Out&& out, const Blocks& blocks, RankInGroup root,
                 StreamRef stream = {}) {
    run(calls::blocks_of_in(Operation::scatter, in, out, detail::blocks_in<In>(blocks), root,
                            ReduceOp::sum, stream));
  }
  /// Starts scatter_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_v_async(In&& in, Out&& out, const Blocks& blocks, RankInGroup root,
                                     StreamRef stream = {}) {
    decltype(auto) own = detail::blocks_in<In>(blocks);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_in(Operation::scatter, i, o, own, root, ReduceOp::sum, stream);
    });
  }

  /// Sends block k of `in` to member k, and receives block k of `out` from member k.
  /// @param in_blocks   The blocks to send; block k is sent to member k.
  /// @param out_blocks  The blocks to receive; block k is received from member k.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_to_all_v(In&& in, Out&& out, const Blocks& in_blocks, const Blocks& out_blocks,
                    StreamRef stream = {}) {
    run(calls::all_to_all_v(in, out, detail::blocks_in<In>(in_blocks),
                            detail::blocks_in<Out>(out_blocks), stream));
  }
  /// Starts all_to_all_v(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_to_all_v_async(In&& in, Out&& out, const Blocks& in_blocks,
                                        const Blocks& out_blocks, StreamRef stream = {}) {
    decltype(auto) sent = detail::blocks_in<In>(in_blocks);
    decltype(auto) received = detail::blocks_in<Out>(out_blocks);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::all_to_all_v(i, o, sent, received, stream);
    });
  }

 protected:
  using AxisCollectives::AxisCollectives;
  ~BlockCollectives() = default;
};

}  // namespace rankmesh

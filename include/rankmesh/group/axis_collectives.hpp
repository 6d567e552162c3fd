// SPDX-License-Identifier: BSD-3-Clause
// Collectives along any axis of a row-major array.
#pragma once

#include <utility>

#include "rankmesh/group/axis.hpp"
#include "rankmesh/group/collectives.hpp"

namespace rankmesh {

/// Adds the collectives whose blocks lie along an axis of an array; see Axis. These collectives
/// accept host and device memory. They do not support in-place operation.
class AxisCollectives : public Collectives {
 public:
  using Collectives::all_gather;
  using Collectives::all_gather_async;
  using Collectives::gather;
  using Collectives::gather_async;
  using Collectives::reduce_scatter;
  using Collectives::reduce_scatter_async;
  using Collectives::scatter;
  using Collectives::scatter_async;

  /// Concatenates the members' blocks along the axis. All members get the whole array.
  /// @param in   This member's block, with the shape of the axis.
  /// @param out  The whole array, which has size() times as many elements as a block.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::two(Operation::all_gather, in, out, stream),
                   detail::units_per_leaf<Out>));
  }
  /// Starts all_gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_async(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::two(Operation::all_gather, i, o, stream),
                        detail::units_per_leaf<Out>);
    });
  }

  /// Reduces the members' arrays element by element. Member k gets block k of the result along the
  /// axis.
  /// @param in   A whole array, which has size() times as many elements as a block.
  /// @param out  This member's block, with the shape of the axis.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter(In&& in, Out&& out, const Axis& axis, ReduceOp op = ReduceOp::sum,
                      StreamRef stream = {}) {
    run(axis.along(calls::reduce_scatter(in, out, op, stream), detail::units_per_leaf<Out>));
  }
  /// Starts reduce_scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, const Axis& axis,
                                          ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::reduce_scatter(i, o, op, stream), detail::units_per_leaf<Out>);
    });
  }

  /// Concatenates the members' blocks along the axis at the root. `out` is ignored on all other
  /// members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, const Axis& axis, RankInGroup root, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::gather, in, out, root, stream),
                   detail::units_per_leaf<Out>));
  }
  /// Starts gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_async(In&& in, Out&& out, const Axis& axis, RankInGroup root,
                                  StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::gather, i, o, root, stream),
                        detail::units_per_leaf<Out>);
    });
  }

  /// Divides the root's array into blocks along the axis, and sends block k to member k. `in` is
  /// ignored on all other members.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, const Axis& axis, RankInGroup root, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::scatter, in, out, root, stream),
                   detail::units_per_leaf<Out>));
  }
  /// Starts scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_async(In&& in, Out&& out, const Axis& axis, RankInGroup root,
                                   StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::scatter, i, o, root, stream),
                        detail::units_per_leaf<Out>);
    });
  }

 protected:
  using Collectives::Collectives;
  ~AxisCollectives() = default;
};

}  // namespace rankmesh

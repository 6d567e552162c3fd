// Collectives along any axis of a row-major array.
#pragma once

#include <utility>

#include "rankmesh/group/axis.hpp"
#include "rankmesh/group/collectives.hpp"

namespace rankmesh {

/// The collectives whose blocks lie along another axis than the first; see Axis. They take host and
/// device memory, and do not work in place.
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

  /// Concatenates every member's block along the axis. `in` has the shape that the axis was made
  /// of.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::two(Operation::all_gather, in, out, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_async(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::two(Operation::all_gather, i, o, stream));
    });
  }

  /// Reduces the whole arrays, and gives the k-th block along the axis to member k.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce_scatter(In&& in, Out&& out, const Axis& axis, ReduceOp op = ReduceOp::sum,
                      StreamRef stream = {}) {
    run(axis.along(calls::reduce_scatter(in, out, op, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, const Axis& axis,
                                          ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::reduce_scatter(i, o, op, stream));
    });
  }

  /// Concatenates every member's block along the axis, at the root.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, RankInGroup root, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::gather, in, out, root, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_async(In&& in, Out&& out, RankInGroup root, const Axis& axis,
                                  StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::gather, i, o, root, stream));
    });
  }

  /// Sends the k-th block along the axis of the root's array to member k.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, RankInGroup root, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::scatter, in, out, root, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_async(In&& in, Out&& out, RankInGroup root, const Axis& axis,
                                   StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::scatter, i, o, root, stream));
    });
  }

 protected:
  using Collectives::Collectives;
  ~AxisCollectives() = default;
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Collectives with blocks of equal size.
#pragma once

#include <ranges>
#include <utility>

#include "rankmesh/group/detail/call_issuer.hpp"

namespace rankmesh {

/// Adds the collectives whose blocks have equal sizes. All functions are collective over the group.
/// GroupCoordinator describes the rules for all operations. In the descriptions below, n is size().
class Collectives : public detail::CallIssuer {
 public:
  /// Blocks until all members have called barrier().
  void barrier() { run_typed<Operation::barrier>({.operation = Operation::barrier}); }
  /// Starts a barrier; returns a Work.
  [[nodiscard]] Work barrier_async() { return start({.operation = Operation::barrier}); }

  /// Copies the root's values to all members. All members must pass the same number of elements.
  template <WritableMemory M>
    requires detail::is_borrowed<M>
  void broadcast(M&& values, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::broadcast, M>(calls::broadcast(values, root, stream));
  }
  /// Starts broadcast(); returns a Work. The memory must stay valid until it is complete.
  template <WritableMemory M>
  [[nodiscard]] auto broadcast_async(M&& values, RankInGroup root, StreamRef stream = {}) {
    return start_one(std::forward<M>(values),
                     [&](auto& v) { return calls::broadcast(v, root, stream); });
  }

  /// Reduces element by element over the members, in place. All members get the result.
  template <WritableReducibleMemory M>
    requires detail::is_borrowed<M>
  void all_reduce(M&& values, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::all_reduce, M>(calls::all_reduce(values, values, op, stream));
  }
  /// Reduces element by element over the members. All members get the result in `out`, which has as
  /// many elements as `in`.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::all_reduce, In, Out>(calls::all_reduce(in, out, op, stream));
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <WritableReducibleMemory M>
  [[nodiscard]] auto all_reduce_async(M&& values, ReduceOp op = ReduceOp::sum,
                                      StreamRef stream = {}) {
    return start_one(std::forward<M>(values),
                     [&](auto& v) { return calls::all_reduce(v, v, op, stream); });
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto all_reduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                      StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::all_reduce(i, o, op, stream); });
  }

  /// Reduces element by element over the members, in place. Only the root gets the result.
  template <WritableReducibleMemory M>
    requires detail::is_borrowed<M>
  void reduce(M&& values, RankInGroup root, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::reduce, M>(calls::reduce(values, values, root, op, stream));
  }
  /// Reduces element by element over the members. At the root, `out` gets the result and has as
  /// many elements as `in`. On other members, `out` does not change.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void reduce(In&& in, Out&& out, RankInGroup root, ReduceOp op = ReduceOp::sum,
              StreamRef stream = {}) {
    run_typed<Operation::reduce, In, Out>(calls::reduce(in, out, root, op, stream));
  }
  /// Starts reduce(); returns a Work. The memory must stay valid until it is complete.
  template <WritableReducibleMemory M>
  [[nodiscard]] auto reduce_async(M&& values, RankInGroup root, ReduceOp op = ReduceOp::sum,
                                  StreamRef stream = {}) {
    return start_one(std::forward<M>(values),
                     [&](auto& v) { return calls::reduce(v, v, root, op, stream); });
  }
  /// Starts reduce(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_async(In&& in, Out&& out, RankInGroup root, ReduceOp op = ReduceOp::sum,
                                  StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::reduce(i, o, root, op, stream); });
  }

  /// Concatenates the `in` of all members in group order. All members get the result in `out`,
  /// which has n times as many elements as `in`.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, StreamRef stream = {}) {
    run_typed<Operation::all_gather, In, Out>(calls::two(Operation::all_gather, in, out, stream));
  }
  /// Starts all_gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_async(In&& in, Out&& out, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::two(Operation::all_gather, i, o, stream);
    });
  }

  /// Reduces the `in` of all members element by element, and gives block k of the result to member
  /// k. `in` has n times as many elements as `out`.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::reduce_scatter, In, Out>(calls::reduce_scatter(in, out, op, stream));
  }
  /// Starts reduce_scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                          StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::reduce_scatter(i, o, op, stream); });
  }

  /// Concatenates the `in` of all members at the root, in group order. The root's `out` has n times
  /// as many elements as `in`. On other members, `out` is ignored.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::gather, In, Out>(calls::rooted(Operation::gather, in, out, root, stream));
  }
  /// Starts gather(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_async(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::rooted(Operation::gather, i, o, root, stream);
    });
  }

  /// Sends block k of the root's `in` to member k. The root's `in` has n times as many elements as
  /// `out`. On other members, `in` is ignored.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::scatter, In, Out>(
        calls::rooted(Operation::scatter, in, out, root, stream));
  }
  /// Starts scatter(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_async(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::rooted(Operation::scatter, i, o, root, stream);
    });
  }

  /// Sends block k of `in` to member k, and receives block k of `out` from member k. `in` and `out`
  /// have the same number of elements, which must be a multiple of n.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_to_all(In&& in, Out&& out, StreamRef stream = {}) {
    require_equal_blocks<In>(in);
    run_typed<Operation::all_to_all, In, Out>(calls::two(Operation::all_to_all, in, out, stream));
  }
  /// Starts all_to_all(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_to_all_async(In&& in, Out&& out, StreamRef stream = {}) {
    require_equal_blocks<In>(in);
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::two(Operation::all_to_all, i, o, stream);
    });
  }

 private:
  // The later check of the call counts units. It would therefore accept blocks that divide a
  // struct.
  template <class In>
  void require_equal_blocks(In& in) const {
    if constexpr (detail::units_of<In> != 1) require_divisible(std::ranges::size(in));
  }

 protected:
  using CallIssuer::CallIssuer;
  ~Collectives() = default;
};

}  // namespace rankmesh

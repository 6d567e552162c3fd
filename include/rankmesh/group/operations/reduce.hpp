// SPDX-License-Identifier: BSD-3-Clause
// Reduces values to one member.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"

namespace rankmesh {

/// reduce() reduces element by element over the members. Only the root gets the result. All members
/// must pass the same number of elements. Collective over the group. all_reduce() says which
/// functions can replace the ReduceOp.
template <bool forms_only = false>
class Reduce : public detail::OperationForms<Operation::reduce> {
 public:
  /// Reduces in place.
  template <WritableReducibleMemory M>
    requires detail::is_borrowed<M>
  void reduce(M&& values, RankInGroup root, OrStream<ReduceOp> op = ReduceOp::sum,
              StreamRef stream = {}) {
    run(values, {.reduction = op.value(), .root = root, .stream = op.stream_or(stream)});
  }
  /// Reduces `in`. At the root, `out` has as many elements as `in`. On other members, `out` does
  /// not change.
  template <Memory In, ReducedOutputOf<In> Out>
  void reduce(In&& in, Out&& out, RankInGroup root, OrStream<ReduceOp> op = ReduceOp::sum,
              StreamRef stream = {}) {
    run(in, out, {.reduction = op.value(), .root = root, .stream = op.stream_or(stream)});
  }
  /// Reduces `in` with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  void reduce(In&& in, Out&& out, RankInGroup root, F&& combine,
              Commutative commutative = Commutative::no) {
    run_user(in, out, combine, commutative, root);
  }
  /// Reduces a container that is moved into the call. Returns the result at the root. On other
  /// members, the result has undefined values.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableReducibleMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> reduce(M&& values, RankInGroup root,
                                              ReduceOp op = ReduceOp::sum) {
    reduce(values, root, op);
    return std::forward<M>(values);
  }
  /// Reduces one value. Other members than the root keep their value. Returns the value that this
  /// member then has.
  template <ReducibleVariable T>
  T reduce(T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    reduce(detail::one(value), root, op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <ReducibleValue T>
  [[nodiscard]] T reduce(const T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return reduce(copy, root, op);
  }

  /// Starts reduce() in place; returns a Work. The memory must stay valid until it is complete.
  template <WritableReducibleMemory M>
  [[nodiscard]] WorkOn<M> reduce_async(M&& values, RankInGroup root,
                                       OrStream<ReduceOp> op = ReduceOp::sum,
                                       StreamRef stream = {}) {
    return start(std::forward<M>(values),
                 {.reduction = op.value(), .root = root, .stream = op.stream_or(stream)});
  }
  /// Starts reduce(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, ReducedOutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> reduce_async(In&& in, Out&& out, RankInGroup root,
                                         OrStream<ReduceOp> op = ReduceOp::sum,
                                         StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.reduction = op.value(), .root = root, .stream = op.stream_or(stream)});
  }
  /// Does the same with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  [[nodiscard]] WorkOn<Out> reduce_async(In&& in, Out&& out, RankInGroup root, F&& combine,
                                         Commutative commutative = Commutative::no) {
    return start_user(std::forward<In>(in), std::forward<Out>(out), combine, commutative, root);
  }
  /// Starts to reduce one value, which must stay valid until the operation is complete.
  template <ReducibleVariable T>
  [[nodiscard]] Work reduce_async(T& value, RankInGroup root, ReduceOp op = ReduceOp::sum) {
    return reduce_async(detail::one(value), root, op);
  }

  RANKMESH_REFUSE_OTHERS(Reduce, reduce)
  RANKMESH_REFUSE_BRACES(Reduce, reduce)
  RANKMESH_REFUSE_BRACES(Reduce, reduce_async)
};

}  // namespace rankmesh

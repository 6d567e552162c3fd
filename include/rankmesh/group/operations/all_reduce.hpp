// SPDX-License-Identifier: BSD-3-Clause
// Reduces values over all members.
#pragma once

#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"

namespace rankmesh {

/// all_reduce() reduces element by element over the members. All members get the result. All must
/// pass the same number of elements. Collective over the group.
///
/// In place of a ReduceOp, the program can pass a function `T combine(const T& left, const T&
/// right)` for values of any trivially copyable type in host memory; see
/// "Rules of the operations" in docs/programs.md.
template <bool forms_only = false>
class AllReduce : public detail::OperationForms<Operation::all_reduce> {
 public:
  /// Reduces in place.
  template <WritableReducibleMemory M>
    requires detail::is_borrowed<M>
  void all_reduce(M&& values, OrStream<ReduceOp> op = ReduceOp::sum, StreamRef stream = {}) {
    run(values, {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Reduces in place with a function.
  template <WritableHostMemory M, ReductionFunction<ValueOf<M>> F>
  void all_reduce(M&& values, F&& combine, Commutative commutative = Commutative::no) {
    run_user(values, values, combine, commutative);
  }
  /// Reduces `in`. `out` has as many elements as `in`.
  template <Memory In, ReducedOutputOf<In> Out>
  void all_reduce(In&& in, Out&& out, OrStream<ReduceOp> op = ReduceOp::sum,
                  StreamRef stream = {}) {
    run(in, out, {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Reduces `in` with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  void all_reduce(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    run_user(in, out, combine, commutative);
  }
  /// Reduces a container that is moved into the call, and returns it.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableReducibleMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> all_reduce(M&& values, ReduceOp op = ReduceOp::sum) {
    all_reduce(values, op);
    return std::forward<M>(values);
  }
  /// Reduces one value, which is changed and returned.
  template <ReducibleVariable T>
  T all_reduce(T& value, ReduceOp op = ReduceOp::sum) {
    all_reduce(detail::one(value), op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <ReducibleValue T>
  [[nodiscard]] T all_reduce(const T& value, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return all_reduce(copy, op);
  }
  /// Reduces one value with a function. The value is changed and returned.
  template <Variable T, ReductionFunction<T> F>
  T all_reduce(T& value, F&& combine, Commutative commutative = Commutative::no) {
    all_reduce(detail::one(value), combine, commutative);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <Value T, ReductionFunction<T> F>
  [[nodiscard]] T all_reduce(const T& value, F&& combine,
                             Commutative commutative = Commutative::no) {
    T copy = value;
    return all_reduce(copy, combine, commutative);
  }

  /// Starts all_reduce() in place; returns a Work. The memory must stay valid until it is complete.
  template <WritableReducibleMemory M>
  [[nodiscard]] WorkOn<M> all_reduce_async(M&& values, OrStream<ReduceOp> op = ReduceOp::sum,
                                           StreamRef stream = {}) {
    return start(std::forward<M>(values),
                 {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Does the same with a function.
  template <WritableHostMemory M, ReductionFunction<ValueOf<M>> F>
  [[nodiscard]] WorkOn<M> all_reduce_async(M&& values, F&& combine,
                                           Commutative commutative = Commutative::no) {
    return start_user(std::forward<M>(values), combine, commutative);
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, ReducedOutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> all_reduce_async(In&& in, Out&& out,
                                             OrStream<ReduceOp> op = ReduceOp::sum,
                                             StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out),
                 {.reduction = op.value(), .stream = op.stream_or(stream)});
  }
  /// Does the same with a function.
  template <HostMemory In, WritableHostMemory Out, MatchingReduction<In, Out> F>
  [[nodiscard]] WorkOn<Out> all_reduce_async(In&& in, Out&& out, F&& combine,
                                             Commutative commutative = Commutative::no) {
    return start_user(std::forward<In>(in), std::forward<Out>(out), combine, commutative);
  }
  /// Starts to reduce one value, which must stay valid until the operation is complete.
  template <ReducibleVariable T>
  [[nodiscard]] Work all_reduce_async(T& value, ReduceOp op = ReduceOp::sum) {
    return all_reduce_async(detail::one(value), op);
  }

  RANKMESH_REFUSE_OTHERS(AllReduce, all_reduce)
};

}  // namespace rankmesh

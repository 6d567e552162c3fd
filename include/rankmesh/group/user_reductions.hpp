// SPDX-License-Identifier: BSD-3-Clause
// Reductions with a function that the caller passes.
#pragma once

#include <concepts>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "rankmesh/group/slice_collectives.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// Adds the reductions that take a function `T combine(const T& left, const T& right)` on values of
/// any trivially copyable type T in host memory. The function must be associative. Values are
/// combined in group order. With Commutative::yes, they may be combined in any order. Every member
/// may call the function; it is unspecified for which elements and how often.
///
/// The members compare the types of the elements if rankmesh knows these types (see DataTypeOf);
/// for other types they compare the sizes.
///
/// If the function throws on some members, the operation still ends on all members, because MPI can
/// neither stop a reduction nor report the failure to the other members. Therefore the results of
/// this one call are undefined on all members. Each member on which the function threw then throws
/// a UsageError, in which the exception is nested. The group is broken afterwards. In their next
/// call of the group, or in close(), the other members throw a PeerError with the reason. Members
/// on other nodes learn the reason only in calls that poll (with the option `deadline` or `check`,
/// and in asynchronous operations).
///
/// Cost: each call creates one MPI_Op and one MPI datatype.
class UserReductions : public SliceCollectives {
 public:
  using SliceCollectives::all_reduce;
  using SliceCollectives::all_reduce_async;
  using SliceCollectives::reduce;
  using SliceCollectives::reduce_async;
  using SliceCollectives::reduce_scatter;
  using SliceCollectives::reduce_scatter_async;

  /// Reduces element by element over the members, in place. All members get the result.
  template <WritableHostValues M, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<M>>
  void all_reduce(M&& values, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = reduction_of<M>(combine, commutative);
    run(calls::user(Operation::all_reduce, values, values, {}, reduction));
  }
  /// Reduces element by element over the members. All members get the result in `out`, which has as
  /// many elements as `in`.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void all_reduce(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = reduction_of<In, Out>(combine, commutative);
    run(calls::user(Operation::all_reduce, in, out, {}, reduction));
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <WritableHostValues M, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<M>>
  [[nodiscard]] auto all_reduce_async(M&& values, F&& combine,
                                      Commutative commutative = Commutative::no) {
    auto reduction = kept_reduction_of<M>(combine, commutative);
    return start_one(
        std::forward<M>(values),
        [&](auto& v) { return calls::user(Operation::all_reduce, v, v, {}, *reduction); },
        reduction);
  }
  /// Starts all_reduce(); returns a Work. The memory must stay valid until it is complete.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto all_reduce_async(In&& in, Out&& out, F&& combine,
                                      Commutative commutative = Commutative::no) {
    return start_reduction(Operation::all_reduce, std::forward<In>(in), std::forward<Out>(out), {},
                           combine, commutative);
  }

  /// Reduces element by element over the members. At the root, `out` gets the result and has as
  /// many elements as `in`. On other members, `out` does not change.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void reduce(In&& in, Out&& out, RankInGroup root, F&& combine,
              Commutative commutative = Commutative::no) {
    auto reduction = reduction_of<In, Out>(combine, commutative);
    run(calls::user(Operation::reduce, in, out, root, reduction));
  }
  /// Starts reduce(); returns a Work. The memory must stay valid until it is complete.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto reduce_async(In&& in, Out&& out, RankInGroup root, F&& combine,
                                  Commutative commutative = Commutative::no) {
    return start_reduction(Operation::reduce, std::forward<In>(in), std::forward<Out>(out), root,
                           combine, commutative);
  }

  /// Reduces the `in` of all members element by element, and gives block k of the result to member
  /// k. `in` has size() times as many elements as `out`.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void reduce_scatter(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = reduction_of<In, Out>(combine, commutative);
    run(calls::user(Operation::reduce_scatter, in, out, {}, reduction));
  }
  /// Starts reduce_scatter(); returns a Work. The memory must stay valid until it is complete.
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, F&& combine,
                                          Commutative commutative = Commutative::no) {
    return start_reduction(Operation::reduce_scatter, std::forward<In>(in), std::forward<Out>(out),
                           {}, combine, commutative);
  }

 protected:
  using SliceCollectives::SliceCollectives;
  ~UserReductions() = default;

 private:
  template <class In, class Out, class F>
  struct ReductionOf {
    using T = std::ranges::range_value_t<Out>;
    static_assert(std::same_as<std::ranges::range_value_t<In>, T>,
                  "in and out must have the same element type");
    using Type = detail::UserReductionOf<T, std::decay_t<F>>;
  };
  template <class In, class Out = In, class F>
  static auto reduction_of(F& combine, Commutative commutative) {
    return typename ReductionOf<In, Out, F>::Type{combine, commutative};
  }
  template <class In, class Out = In, class F>
  static auto kept_reduction_of(F& combine, Commutative commutative) {
    return std::make_shared<typename ReductionOf<In, Out, F>::Type>(combine, commutative);
  }
  template <class In, class Out, class F>
  auto start_reduction(Operation operation, In&& in, Out&& out, RankInGroup root, F& combine,
                       Commutative commutative) {
    auto reduction = kept_reduction_of<In, Out>(combine, commutative);
    return start_two(
        std::forward<In>(in), std::forward<Out>(out),
        [&](auto& i, auto& o) { return calls::user(operation, i, o, root, *reduction); },
        reduction);
  }
};

}  // namespace rankmesh

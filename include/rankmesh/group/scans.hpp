// SPDX-License-Identifier: BSD-3-Clause
// Prefix reductions.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <ranges>
#include <type_traits>
#include <utility>

#include "rankmesh/group/returned_results.hpp"

namespace rankmesh {

/// What a scan combines values of T with: a ReduceOp or a function.
template <class R, class T>
concept ScanReduction = (std::same_as<std::remove_cvref_t<R>, ReduceOp> && ReducibleElement<T>) ||
                        ReductionFunction<R, T>;

/// Adds the prefix reductions of host memory. scan() combines the values of the members 0 to k for
/// member k; exscan() combines those of the members 0 to k-1. All functions are collective over the
/// group.
///
/// `reduction` is any ReduceOp except avg (for complex numbers, sum or prod), or a function
/// `T f(const T& left, const T& right)`; UserReductions says more about functions. Values are
/// combined in group order, so a function need not be commutative.
class Scans : public ReturnedResults {
 public:  /// Combines the values element by element, in place. Blocks.
  /// @throws UsageError if `reduction` is avg, or if it cannot combine complex numbers.
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
    requires detail::is_borrowed<M>
  void scan(M&& values, R&& reduction = ReduceOp::sum) {
    prefix<Operation::scan>(values, reduction);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
    requires(!detail::is_borrowed<M>)
  [[nodiscard]] std::remove_cvref_t<M> scan(M&& values, R&& reduction = ReduceOp::sum) {
    scan(values, reduction);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  T scan(T& value, ReduceOp op = ReduceOp::sum) {
    scan(one(value), op);
    return value;
  }
  /// Does the same for a constant, or with a function of the program. Returns the result; `value`
  /// does not change.
  template <Value T, ScanReduction<T> R = ReduceOp>
  [[nodiscard]] T scan(const T& value, R&& reduction = ReduceOp::sum) {
    T copy = value;
    scan(one(copy), reduction);
    return copy;
  }
  /// Starts scan(); returns a Work. The memory must stay valid until it is complete.
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
  [[nodiscard]] auto scan_async(M&& values, R&& reduction = ReduceOp::sum) {
    return start_prefix<Operation::scan>(std::forward<M>(values), reduction);
  }

  /// Combines the values of the members before this one, in place. Blocks. The first member has no
  /// member before it, and gets zeros, or with a function values `T{}`. For example,
  /// `const auto offset = tp.exscan(count)` gives the position at which this member's elements
  /// begin.
  /// @throws UsageError in the same cases as scan().
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
    requires detail::is_borrowed<M>
  void exscan(M&& values, R&& reduction = ReduceOp::sum) {
    prefix<Operation::exscan>(values, reduction);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
    requires(!detail::is_borrowed<M>)
  [[nodiscard]] std::remove_cvref_t<M> exscan(M&& values, R&& reduction = ReduceOp::sum) {
    exscan(values, reduction);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <ReducibleValue T>
    requires(!std::is_const_v<T>)
  T exscan(T& value, ReduceOp op = ReduceOp::sum) {
    exscan(one(value), op);
    return value;
  }
  /// Does the same for a constant, or with a function of the program. Returns the result; `value`
  /// does not change.
  template <Value T, ScanReduction<T> R = ReduceOp>
  [[nodiscard]] T exscan(const T& value, R&& reduction = ReduceOp::sum) {
    T copy = value;
    exscan(one(copy), reduction);
    return copy;
  }
  /// Starts exscan(); returns a Work. The memory must stay valid until it is complete.
  template <WritableHostValues M, ScanReduction<std::ranges::range_value_t<M>> R = ReduceOp>
  [[nodiscard]] auto exscan_async(M&& values, R&& reduction = ReduceOp::sum) {
    return start_prefix<Operation::exscan>(std::forward<M>(values), reduction);
  }

 protected:
  using ReturnedResults::ReturnedResults;
  ~Scans() = default;

 private:
  // MPI and shared memory know complex numbers as pairs of floats, which have no product.
  static constexpr std::multiplies<> product{};
  template <class M, class R>
  using UserOf = detail::UserReductionOf<std::ranges::range_value_t<M>, std::decay_t<R>>;

  template <Operation operation, class M, class R>
  void prefix(M& values, R& reduction) {
    if constexpr (std::same_as<std::remove_cvref_t<R>, ReduceOp>) {
      if constexpr (detail::is_complex<std::ranges::range_value_t<M>>)
        if (reduction == ReduceOp::prod) return prefix<operation>(values, product);
      run_typed<operation, M>(calls::scan(operation, values, reduction));
    } else {
      UserOf<M, R> user{reduction, Commutative::no};
      run(calls::user(operation, values, values, {}, user));
    }
  }
  template <Operation operation, class M, class R>
  auto start_prefix(M&& values, R& reduction) {
    if constexpr (std::same_as<std::remove_cvref_t<R>, ReduceOp>) {
      if constexpr (detail::is_complex<std::ranges::range_value_t<M>>)
        if (reduction == ReduceOp::prod)
          return start_prefix<operation>(std::forward<M>(values), product);
      return start_one(std::forward<M>(values),
                       [&](auto& v) { return calls::scan(operation, v, reduction); });
    } else {
      const auto user = std::make_shared<UserOf<M, R>>(reduction, Commutative::no);
      return start_one(
          std::forward<M>(values), [&](auto& v) { return calls::user(operation, v, v, {}, *user); },
          user);
    }
  }
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Reduces the values of the members before each member.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/operations/recv.hpp"
#include "rankmesh/group/operations/send.hpp"
#include "rankmesh/group/operations/send_recv.hpp"

namespace rankmesh {

/// Elements that scan() combines with a ReduceOp: integers, float, double and complex numbers.
template <class T>
concept ScannableElement =
    (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) || detail::is_complex<T>;

/// scan() combines the values of the members 0 to k for member k; exscan() combines those of the
/// members 0 to k-1. Values are in host memory, and are combined in group order, so a function need
/// not be commutative. Collective over the group; blocks.
///
/// Cost: each member sends up to ceil(log2 n) messages, and one more for exscan(). The messages
/// have the tag 16383. Therefore the program must not use this tag for messages to the same members
/// during a scan. In records and errors, a scan appears as send, recv and send_recv.
template <bool forms_only = false>
class Scan : public detail::OperationForms<Operation{12}> {
 public:
  /// Combines the values element by element, in place.
  /// @param op  Any ReduceOp except avg, or a function `T f(const T& left, const T& right)`. For
  ///            complex numbers, sum or prod.
  /// @throws UsageError if `op` is avg, or if it cannot combine complex numbers.
  template <HostValues M>
    requires(detail::is_borrowed<M> && WritableHostValues<M> &&
             ScannableElement<std::ranges::range_value_t<M>>)
  void scan(M&& values, ReduceOp op = ReduceOp::sum) {
    using T = std::ranges::range_value_t<M>;
    require_scannable<T>("scan", op);
    inclusive<T>(span_of(values), combining<T>(op));
  }
  /// Does the same with a function of the program.
  template <HostValues M, ReductionFunction<std::ranges::range_value_t<M>> F>
    requires(detail::is_borrowed<M> && WritableHostValues<M>)
  void scan(M&& values, F&& combine) {
    inclusive<std::ranges::range_value_t<M>>(span_of(values), combine);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <HostValues M>
    requires(!detail::is_borrowed<M> && WritableHostValues<M> &&
             ScannableElement<std::ranges::range_value_t<M>>)
  [[nodiscard]] std::remove_cvref_t<M> scan(M&& values, ReduceOp op = ReduceOp::sum) {
    scan(values, op);
    return std::forward<M>(values);
  }
  /// Does the same with a function of the program.
  template <HostValues M, ReductionFunction<std::ranges::range_value_t<M>> F>
    requires(!detail::is_borrowed<M> && WritableHostValues<M>)
  [[nodiscard]] std::remove_cvref_t<M> scan(M&& values, F&& combine) {
    scan(values, combine);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <Value T>
    requires(ScannableElement<T> && !std::is_const_v<T>)
  T scan(T& value, ReduceOp op = ReduceOp::sum) {
    scan(detail::one(value), op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <Value T>
    requires ScannableElement<T>
  [[nodiscard]] T scan(const T& value, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return scan(copy, op);
  }
  /// Does the same for one value, with a function of the program. Returns the result.
  template <Value T, ReductionFunction<T> F>
  [[nodiscard]] T scan(const T& value, F&& combine) {
    T copy = value;
    scan(detail::one(copy), combine);
    return copy;
  }

  /// Combines the values of the members before this one, in place. The first member has no member
  /// before it, and gets zeros. For example, `const auto offset = tp.exscan(count)` gives the
  /// position at which this member's elements begin.
  /// @throws UsageError in the same cases as scan().
  template <HostValues M>
    requires(detail::is_borrowed<M> && WritableHostValues<M> &&
             ScannableElement<std::ranges::range_value_t<M>>)
  void exscan(M&& values, ReduceOp op = ReduceOp::sum) {
    using T = std::ranges::range_value_t<M>;
    require_scannable<T>("exscan", op);
    exclusive<T>(span_of(values), combining<T>(op));
  }
  /// Does the same with a function of the program. The first member gets values `T{}`.
  template <HostValues M, ReductionFunction<std::ranges::range_value_t<M>> F>
    requires(detail::is_borrowed<M> && WritableHostValues<M>)
  void exscan(M&& values, F&& combine) {
    exclusive<std::ranges::range_value_t<M>>(span_of(values), combine);
  }
  /// Does the same for a container that is moved into the call. Returns the container.
  template <HostValues M>
    requires(!detail::is_borrowed<M> && WritableHostValues<M> &&
             ScannableElement<std::ranges::range_value_t<M>>)
  [[nodiscard]] std::remove_cvref_t<M> exscan(M&& values, ReduceOp op = ReduceOp::sum) {
    exscan(values, op);
    return std::forward<M>(values);
  }
  /// Does the same with a function of the program.
  template <HostValues M, ReductionFunction<std::ranges::range_value_t<M>> F>
    requires(!detail::is_borrowed<M> && WritableHostValues<M>)
  [[nodiscard]] std::remove_cvref_t<M> exscan(M&& values, F&& combine) {
    exscan(values, combine);
    return std::forward<M>(values);
  }
  /// Does the same for one value, which is changed and returned.
  template <Value T>
    requires(ScannableElement<T> && !std::is_const_v<T>)
  T exscan(T& value, ReduceOp op = ReduceOp::sum) {
    exscan(detail::one(value), op);
    return value;
  }
  /// Does the same for a constant. Returns the result; the constant does not change.
  template <Value T>
    requires ScannableElement<T>
  [[nodiscard]] T exscan(const T& value, ReduceOp op = ReduceOp::sum) {
    T copy = value;
    return exscan(copy, op);
  }
  /// Does the same for one value, with a function of the program. Returns the result.
  template <Value T, ReductionFunction<T> F>
  [[nodiscard]] T exscan(const T& value, F&& combine) {
    T copy = value;
    exscan(detail::one(copy), combine);
    return copy;
  }

  RANKMESH_REFUSE_OTHERS(Scan, exscan, exscan, false)
  RANKMESH_REFUSE_OTHERS(Scan, scan, scan, false)

 private:
  static constexpr int scan_tag = 16383;

  template <class M>
  static auto span_of(M& values) {
    return std::span{std::ranges::data(values), std::ranges::size(values)};
  }
  template <class T>
  void require_scannable(std::string_view operation, ReduceOp op) {
    const bool is_ordered = op == ReduceOp::min || op == ReduceOp::max;
    if (op == ReduceOp::avg || (detail::is_complex<T> && is_ordered))
      issuer().refuse_scan(operation, op);
  }
  // Returns the function that combines two values as the operation does.
  template <class T>
  static auto combining(ReduceOp op) {
    return [op](const T& left, const T& right) -> T {
      if (op == ReduceOp::prod) return static_cast<T>(left * right);
      if constexpr (!detail::is_complex<T>) {
        if (op == ReduceOp::min) return std::min(left, right);
        if (op == ReduceOp::max) return std::max(left, right);
      }
      return static_cast<T>(left + right);
    };
  }

  // After the round with the distance d, `values` combines the members k-2d+1 to k.
  template <class T, class F>
  void inclusive(std::span<T> values, F&& combine) {
    const auto memory = std::make_unique<T[]>(values.size());
    const std::span<T> received{memory.get(), values.size()};
    const std::int64_t k = issuer().self().value(),
                       size = static_cast<std::int64_t>(issuer().size());
    for (std::int64_t distance = 1; distance < size; distance *= 2) {
      const bool sends = distance < size - k;
      const bool receives = k >= distance;
      if (sends && receives)
        other<SendRecv<>>().send_recv(values, received, k + distance, k - distance, scan_tag);
      else if (sends)
        other<Send<>>().send(values, k + distance, scan_tag);
      else if (receives)
        other<Recv<>>().recv(received, k - distance, scan_tag);
      if (!receives) continue;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = combine(received[i], values[i]);
    }
  }
  template <class T, class F>
  void exclusive(std::span<T> values, F&& combine) {
    inclusive<T>(values, combine);
    const auto memory = std::make_unique<T[]>(values.size());  // of values T{}
    const std::span<T> received{memory.get(), values.size()};
    const std::int64_t k = issuer().self().value(),
                       size = static_cast<std::int64_t>(issuer().size());
    if (k > 0 && k + 1 < size)
      other<SendRecv<>>().send_recv(values, received, k + 1, k - 1, scan_tag);
    else if (k > 0)
      other<Recv<>>().recv(received, k - 1, scan_tag);
    else if (size > 1)
      other<Send<>>().send(values, 1, scan_tag);
    std::ranges::copy(received, values.begin());
  }
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The reference implementation of reductions.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh::conformance {

inline constexpr std::array all_reductions{ReduceOp::sum, ReduceOp::prod, ReduceOp::min,
                                           ReduceOp::max, ReduceOp::avg};

/// Combines two values by the rule of docs/arithmetic.md: integers wrap around, a number wins over
/// a NaN in min and max, and -0 is below +0.
template <class T>
T combined(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    if (op == ReduceOp::prod) return static_cast<T>(x * y);
    if (op == ReduceOp::min || op == ReduceOp::max) return (op == ReduceOp::min) == (b < a) ? b : a;
    return static_cast<T>(x + y);
  } else {
    if (op == ReduceOp::prod) return a * b;
    if (op != ReduceOp::min && op != ReduceOp::max) return a + b;
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    const bool b_is_below = a == b ? std::signbit(b) : b < a;
    return (op == ReduceOp::min) == b_is_below ? b : a;
  }
}

/// Divides a sum. Integers are divided as 64-bit integers: their type may not hold the number of
/// members.
template <class T>
T average(T sum, std::int64_t members) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>(static_cast<Wide>(sum) / static_cast<Wide>(members));
  } else {
    return static_cast<T>(sum / static_cast<T>(members));
  }
}

/// Reduces the values of members 0 .. members-1, in this order and in their own type; an average is
/// the sum divided by the number of members.
/// @param value_of  Returns the value of a member.
template <class T, class ValueOf>
T reduced(ReduceOp op, std::int64_t members, const ValueOf& value_of) {
  T result = static_cast<T>(value_of(0));
  for (std::int64_t k = 1; k < members; ++k)
    result = combined(op, result, static_cast<T>(value_of(k)));
  return op == ReduceOp::avg ? average(result, members) : result;
}

}  // namespace rankmesh::conformance

// SPDX-License-Identifier: BSD-3-Clause
// The reference implementation of reductions.
#pragma once

#include <array>
#include <cstdint>

#include "rankmesh/base/reduce_op.hpp"

namespace rankmesh_test {

inline constexpr std::array all_reductions{rankmesh::ReduceOp::sum, rankmesh::ReduceOp::prod,
                                           rankmesh::ReduceOp::min, rankmesh::ReduceOp::max,
                                           rankmesh::ReduceOp::avg};

/// Reduces the values of members 0 .. members-1, in this order and in their own type; an average is
/// the sum divided by the number of members.
/// @param value_of  Returns the value of a member.
template <class T, class ValueOf>
T reduced(rankmesh::ReduceOp op, std::int64_t members, const ValueOf& value_of) {
  using rankmesh::ReduceOp;
  T result = static_cast<T>(value_of(0));
  for (std::int64_t k = 1; k < members; ++k) {
    const T value = static_cast<T>(value_of(k));
    switch (op) {
      case ReduceOp::sum:
      case ReduceOp::avg:
        result = static_cast<T>(result + value);
        break;
      case ReduceOp::prod:
        result = static_cast<T>(result * value);
        break;
      case ReduceOp::min:
        result = value < result ? value : result;
        break;
      case ReduceOp::max:
        result = result < value ? value : result;
        break;
    }
  }
  return op == ReduceOp::avg ? static_cast<T>(result / static_cast<T>(members)) : result;
}

/// Returns the value of a member at place i: 1, 2 or 3, so that products of 16
/// are exact in every type.
inline int small_value(std::int64_t member, std::int64_t i) {
  return static_cast<int>(1 + (member * 7 + i * 3) % 3);
}

}  // namespace rankmesh_test

// SPDX-License-Identifier: BSD-3-Clause
// The parts of Call::bucket.
#pragma once

#include <cstdint>

#include "rankmesh/base/user_function.hpp"

namespace rankmesh::detail {

/// What Call::bucket says about a call: which bucket it moves, which buffer of the bucket has
/// another place than in the first round, and for which function rankmesh makes the call. Numbers
/// begin at 1; 0 means none.
struct BucketMark {
  std::int64_t number = 0, place = 0, earlier_place = 0;
  UserFunction function = UserFunction::none;

  [[nodiscard]] static BucketMark of(std::int64_t word) {
    return {word & 0xffff, word >> 16 & 0xfff, word >> 28 & 0xfff,
            static_cast<UserFunction>(word >> function_shift & 0xff)};
  }
  [[nodiscard]] std::int64_t word() const {
    return (number & 0xffff) | (place & 0xfff) << 16 | (earlier_place & 0xfff) << 28 |
           of_function(function);
  }
  [[nodiscard]] static std::int64_t of_function(UserFunction function) {
    return static_cast<std::int64_t>(function) << function_shift;
  }

 private:
  static constexpr int function_shift = 40;
};

}  // namespace rankmesh::detail

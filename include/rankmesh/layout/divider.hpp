// SPDX-License-Identifier: BSD-3-Clause
// Fast division by a divisor that is used many times.
#pragma once

#include <bit>
#include <cstdint>

namespace rankmesh {

/// Divides by means of one multiplication and one shift. The constructor computes the reciprocal of
/// the divisor. Therefore a division is several times faster than the division instruction of the
/// processor. The result is exact for every dividend that is not negative.
class Divider {
 public:
  Divider() = default;
  /// @param divisor  the divisor, which must be at least 1. The constructor does not check this.
  explicit Divider(std::int64_t divisor)
      : shift_{static_cast<int>(std::bit_width(static_cast<std::uint64_t>(divisor - 1)))} {
    // The reciprocal is scaled by 2^(63 + shift) and rounded up. The result fits in 64 bits,
    // because divisor > 2^(shift-1). The rounding never changes a quotient, because divisor <=
    // 2^shift and every dividend is less than 2^63.
    const auto d = static_cast<std::uint64_t>(divisor);
    magic_ = static_cast<std::uint64_t>(((Wide{1} << (63 + shift_)) + (d - 1)) / d);
  }

  /// Returns dividend / divisor. The dividend must not be negative.
  [[nodiscard]] std::int64_t quotient(std::int64_t dividend) const {
    const Wide product = Wide{static_cast<std::uint64_t>(dividend) << 1} * magic_;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(product >> 64) >> shift_);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  std::uint64_t magic_ = std::uint64_t{1} << 63;  // reciprocal of the divisor 1
  int shift_ = 0;
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Fast division by a divisor that is known in advance.
#pragma once

#include <bit>
#include <cstdint>

namespace rankmesh {

/// Divides by one multiplication and one shift. This is several times faster than the division of
/// the processor, because the reciprocal of the divisor is computed in advance. The result is exact
/// for every dividend that is not negative.
class Divider {
 public:
  Divider() = default;
  /// @param divisor  must be 1 or more. This is not checked.
  explicit Divider(std::int64_t divisor)
      : shift_{static_cast<int>(std::bit_width(static_cast<std::uint64_t>(divisor - 1)))} {
    // The reciprocal has 63 + shift bits and is rounded up. It fits in 64 bits, and its error never
    // changes a quotient, because 2^(shift-1) < divisor <= 2^shift and dividends are below 2^63.
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

  std::uint64_t magic_ = std::uint64_t{1} << 63;  // of 1
  int shift_ = 0;
};

}  // namespace rankmesh

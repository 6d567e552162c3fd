// Division by a number that is known long before it is used.
#pragma once

#include <bit>
#include <cstdint>

namespace rankmesh {

/// Divides by one multiplication and one shift, several times faster than the processor's division:
/// the divisor's reciprocal is computed once. Exact for every dividend from 0 up.
class Divider {
 public:
  Divider() = default;
  /// @param divisor  from 1 up.
  explicit Divider(std::int64_t divisor)
      : shift_{static_cast<int>(std::bit_width(static_cast<std::uint64_t>(divisor - 1)))} {
    // The reciprocal in 63 + shift bits, rounded up; that it fits 64 bits and that its error never
    // reaches a quotient follows from 2^(shift-1) < divisor <= 2^shift and dividends below 2^63.
    const auto d = static_cast<std::uint64_t>(divisor);
    magic_ = static_cast<std::uint64_t>(((Wide{1} << (63 + shift_)) + (d - 1)) / d);
  }

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

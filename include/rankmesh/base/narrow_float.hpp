// SPDX-License-Identifier: BSD-3-Clause
// Floating-point numbers of 16 and 8 bits. They are converted to float32 for arithmetic.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

namespace detail {

/// Converts between float32 and a format that has one sign bit, `exponent` exponent bits and
/// `mantissa` mantissa bits, as in IEEE 754. The format e4m3 has no infinity, so values with the
/// highest exponent are ordinary numbers. The only exception is NaN, whose exponent bits and
/// mantissa bits are all 1 (Micikevicius et al., FP8 Formats for Deep Learning, arXiv 2209.05433).
template <int exponent, int mantissa, Overflow overflow, bool has_infinity, class Bits>
struct NarrowFormat {
  static constexpr int bias = (1 << (exponent - 1)) - 1;
  static constexpr int shift = 23 - mantissa;  // float32 has 23 mantissa bits
  static constexpr std::uint32_t all_exponents = ((1U << exponent) - 1) << mantissa;
  static constexpr std::uint32_t nan = has_infinity && overflow == Overflow::infinity
                                           ? all_exponents | (1U << (mantissa - 1))
                                           : (1U << (exponent + mantissa)) - 1;
  static constexpr std::uint32_t largest =
      has_infinity ? all_exponents - 1 : (1U << (exponent + mantissa)) - 2;

  static constexpr float decode(Bits stored) {
    const std::uint32_t magnitude = stored & ((1U << (exponent + mantissa)) - 1);
    const std::uint32_t sign = static_cast<std::uint32_t>(stored >> (exponent + mantissa)) << 31;
    // The stored exponent of float32 is larger by a constant. A subnormal number of the narrow
    // format is a multiple of its smallest number. No operand is a subnormal float32, because a
    // program may have made its processor take these for 0.
    std::uint32_t bits = magnitude << shift;
    if constexpr (bias != 127) {
      constexpr float smallest =
          std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias - mantissa) << 23);
      const float multiple = static_cast<float>(magnitude) * smallest;
      bits = magnitude >> mantissa == 0 ? std::bit_cast<std::uint32_t>(multiple)
                                        : bits + (static_cast<std::uint32_t>(127 - bias) << 23);
    }
    if constexpr (has_infinity) {
      if (magnitude >= all_exponents) bits = (255U << 23) | ((magnitude - all_exponents) << shift);
    } else if (magnitude == nan) {
      bits = 0x7fc00000U;
    }
    return std::bit_cast<float>(bits | sign);
  }

  // Rounds to the nearest value. A tie is rounded to the even value.
  static constexpr Bits encode(float value) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 31) << (exponent + mantissa);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > (255U << 23)) return static_cast<Bits>(sign | nan);
    constexpr int smallest_exponent = 128 - bias;  // of a normal number, as float32 stores it
    std::uint32_t result = 0;
    if (static_cast<int>(magnitude >> 23) >= smallest_exponent) {
      const std::uint32_t odd = (magnitude >> shift) & 1;
      result = ((magnitude + (1U << (shift - 1)) - 1 + odd) >> shift) -
               (static_cast<std::uint32_t>(127 - bias) << mantissa);
    } else {
      const int stored = static_cast<int>(magnitude >> 23);
      const std::uint64_t digits = (magnitude & 0x7fffffU) | (stored == 0 ? 0U : 0x800000U);
      const int down = shift + smallest_exponent - (stored == 0 ? 1 : stored);
      if (down < 40) {
        const std::uint64_t odd = (digits >> down) & 1;
        result = static_cast<std::uint32_t>((digits + (std::uint64_t{1} << (down - 1)) - 1 + odd) >>
                                            down);
      }
    }
    if (result > largest) result = overflow == Overflow::infinity ? all_exponents : largest;
    return static_cast<Bits>(sign | result);
  }
};

}  // namespace detail

/// Stores a number in a narrow format. The conversion from float rounds to the nearest value, and
/// it rounds a tie to the even value. The conversion to float is exact. The type has no arithmetic
/// operators, so a program converts to float before it computes. CUDA's __half and __nv_bfloat16
/// have the same representation as Float16 and BFloat16.
template <class Format, class Bits>
struct NarrowFloat {
  Bits bits = 0;  ///< The number in its narrow format.

  NarrowFloat() = default;
  /// Rounds a float to the nearest value, ties to even.
  constexpr explicit NarrowFloat(float value) : bits{Format::encode(value)} {}
  /// Creates a number from its bits.
  static constexpr NarrowFloat from_bits(Bits stored) {
    NarrowFloat result;
    result.bits = stored;
    return result;
  }
  /// Returns the exact value as a float.
  constexpr explicit operator float() const { return Format::decode(bits); }
  /// Compares the bits. Therefore a NaN equals itself, and +0 differs from -0.
  friend constexpr bool operator==(NarrowFloat, NarrowFloat) = default;
};

/// The data type of Float16.
template <>
struct DataTypeOf<Float16> {
  static constexpr DataType value = DataType::float16;  ///< The data type.
};
/// The data type of BFloat16.
template <>
struct DataTypeOf<BFloat16> {
  static constexpr DataType value = DataType::bfloat16;  ///< The data type.
};
/// The data type of Float8E4M3.
template <>
struct DataTypeOf<Float8E4M3> {
  static constexpr DataType value = DataType::float8_e4m3;  ///< The data type.
};
/// The data type of Float8E5M2.
template <>
struct DataTypeOf<Float8E5M2> {
  static constexpr DataType value = DataType::float8_e5m2;  ///< The data type.
};

/// Converts `to.size()` narrow floats to float32. The function is local and does not throw.
/// @param type  the narrow type of the elements at `from`.
RANKMESH_API void widen(DataType type, const std::byte* from, std::span<float> to);
/// Converts float32 to `from.size()` narrow floats. Each number is rounded to the nearest value,
/// and a tie is rounded to the even value. The function is local and does not throw.
/// @param type  the narrow type of the elements at `to`.
RANKMESH_API void narrow(DataType type, std::span<const float> from, std::byte* to);

}  // namespace rankmesh

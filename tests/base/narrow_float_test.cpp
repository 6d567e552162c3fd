// SPDX-License-Identifier: BSD-3-Clause
// Compares narrow floats with their definition: the nearest value, ties to even.
#include <doctest/doctest.h>

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"

using namespace rankmesh;

namespace {

struct Shape {
  int exponent, mantissa;
  bool has_infinity;
};

// The value of a pattern by the definition, in double.
double value_of(const Shape& shape, unsigned bits) {
  const unsigned digits = bits & ((1U << shape.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> shape.mantissa) & ((1 << shape.exponent) - 1);
  const int bias = (1 << (shape.exponent - 1)) - 1;
  const bool negative = (bits >> (shape.exponent + shape.mantissa)) != 0;
  double value =
      exponent == 0 ? std::ldexp(digits, 1 - bias - shape.mantissa)
                    : std::ldexp((1U << shape.mantissa) + digits, exponent - bias - shape.mantissa);
  if (exponent == (1 << shape.exponent) - 1) {
    if (shape.has_infinity) value = digits == 0 ? INFINITY : NAN;
    if (!shape.has_infinity && digits == (1U << shape.mantissa) - 1) value = NAN;
  }
  return negative ? -value : value;
}

template <class Narrow>
void test_format(const Shape& shape) {
  const unsigned all = 1U << (1 + shape.exponent + shape.mantissa);
  std::vector<double> finite;  // positive values in ascending order
  for (unsigned bits = 0; bits < all; ++bits) {
    const auto stored = Narrow::from_bits(static_cast<decltype(Narrow::bits)>(bits));
    const double expected = value_of(shape, bits);
    const float decoded = static_cast<float>(stored);
    if (std::isnan(expected)) {
      CHECK(std::isnan(decoded));
      CHECK(std::isnan(static_cast<float>(Narrow{decoded})));
      continue;
    }
    REQUIRE(decoded == expected);
    if (std::isinf(expected) && shape.mantissa == 2)
      continue;  // 8-bit floats keep the largest value, see below
    REQUIRE(Narrow{decoded} == stored);
    if (bits < all / 2 && std::isfinite(expected)) finite.push_back(expected);
  }
  // Between two neighbours the nearer one is expected, and half way the even one, which is
  // every second.
  for (std::size_t i = 0; i + 1 < finite.size(); ++i) {
    const double middle = (finite[i] + finite[i + 1]) / 2;
    const auto lower = static_cast<unsigned>(i);
    const auto stored = [](double value) {
      return unsigned{Narrow{static_cast<float>(value)}.bits};
    };
    if (static_cast<double>(static_cast<float>(middle)) != middle)
      continue;  // below the smallest float32
    REQUIRE(stored(middle) == (lower % 2 == 0 ? lower : lower + 1));
    REQUIRE(stored(std::nextafter(static_cast<float>(middle), 0.0F)) == lower);
    REQUIRE(stored(std::nextafter(static_cast<float>(middle), INFINITY)) == lower + 1);
    REQUIRE(stored(-middle) == ((lower % 2 == 0 ? lower : lower + 1) | all / 2));
  }
}

}  // namespace

TEST_CASE("every stored pattern has its value, and every value goes to the nearest pattern") {
  test_format<Float16>({5, 10, true});
  test_format<BFloat16>({8, 7, true});
  test_format<Float8E4M3>({4, 3, false});
  test_format<Float8E5M2>({5, 2, true});
}

#ifdef __SSE2__
TEST_CASE("subnormal numbers have their values where the processor takes those of float32 for 0") {
  constexpr unsigned denormals_are_zero = 0x40, flush_to_zero = 0x8000;
  const unsigned usual = _mm_getcsr();
  _mm_setcsr(usual | denormals_are_zero | flush_to_zero);
  test_format<Float16>({5, 10, true});
  test_format<Float8E4M3>({4, 3, false});
  test_format<Float8E5M2>({5, 2, true});
  _mm_setcsr(usual);
}
#endif

TEST_CASE("values that are too large become infinity, or the largest value in 8 bits") {
  CHECK(Float16{65504.0F}.bits == 0x7bff);
  CHECK(Float16{65519.0F}.bits == 0x7bff);
  CHECK(Float16{65520.0F}.bits == 0x7c00);
  CHECK(Float16{-1e30F}.bits == 0xfc00);
  CHECK(BFloat16{3.4e38F}.bits == 0x7f80);
  CHECK(static_cast<float>(Float8E4M3{1e6F}) == 448.0F);
  CHECK(static_cast<float>(Float8E4M3{-INFINITY}) == -448.0F);
  CHECK(static_cast<float>(Float8E5M2{INFINITY}) == 57344.0F);
  CHECK(Float16{1e-30F}.bits == 0);
  CHECK(Float16{-0.0F}.bits == 0x8000);
  static_assert(DataTypeOf<BFloat16>::value == DataType::bfloat16 && sizeof(Float8E4M3) == 1);
}

TEST_CASE("spans convert like single numbers") {
  const std::array<float, 5> values{1, -2.5F, 1e-3F, 300, 0};
  for (const DataType type :
       {DataType::float16, DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2}) {
    std::array<std::byte, 10> stored{};
    std::array<float, 5> back{};
    narrow(type, values, stored.data());
    widen(type, stored.data(), back);
    CHECK(back[1] == -2.5F);
    CHECK(back[4] == 0.0F);
    CHECK(is_narrow_float(type));
  }
  CHECK_FALSE(is_narrow_float(DataType::float32));
}

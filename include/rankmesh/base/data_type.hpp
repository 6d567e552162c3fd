// SPDX-License-Identifier: BSD-3-Clause
// The element types that collectives carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "rankmesh/export.hpp"

namespace rankmesh {

enum class DataType : std::uint8_t {
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2,
};

/// A floating-point number of 16 or 8 bits. This template is defined in
/// rankmesh/base/narrow_float.hpp.
template <class Format, class Bits>
struct NarrowFloat;

namespace detail {
/// Says what a conversion returns if the value is too large for the narrow type. For such a
/// value, conversions to float16 and bfloat16 return infinity, and conversions to the 8-bit types
/// return the largest finite value. CUDA's conversions do the same by default.
enum class Overflow : std::uint8_t { infinity, largest };
template <int exponent, int mantissa, Overflow overflow, bool has_infinity, class Bits>
struct NarrowFormat;
}  // namespace detail

using Float16 =
    NarrowFloat<detail::NarrowFormat<5, 10, detail::Overflow::infinity, true, std::uint16_t>,
                std::uint16_t>;
using BFloat16 =
    NarrowFloat<detail::NarrowFormat<8, 7, detail::Overflow::infinity, true, std::uint16_t>,
                std::uint16_t>;
using Float8E4M3 =
    NarrowFloat<detail::NarrowFormat<4, 3, detail::Overflow::largest, false, std::uint8_t>,
                std::uint8_t>;
using Float8E5M2 =
    NarrowFloat<detail::NarrowFormat<5, 2, detail::Overflow::largest, true, std::uint8_t>,
                std::uint8_t>;

/// Calls `f` with std::type_identity<T>, where T is the C++ type of the elements, and returns the
/// result of `f`. The result must have the same type for all T. The narrow floats are complete
/// types only if rankmesh/base/narrow_float.hpp is included.
template <class F>
constexpr decltype(auto) visit(DataType type, F&& f) {
  switch (type) {
    case DataType::int8:  // NOLINT(bugprone-branch-clone): f may do the same for several types
      return f(std::type_identity<std::int8_t>{});
    case DataType::uint8:
      return f(std::type_identity<std::uint8_t>{});
    case DataType::int16:
      return f(std::type_identity<std::int16_t>{});
    case DataType::uint16:
      return f(std::type_identity<std::uint16_t>{});
    case DataType::int32:
      return f(std::type_identity<std::int32_t>{});
    case DataType::uint32:
      return f(std::type_identity<std::uint32_t>{});
    case DataType::int64:
      return f(std::type_identity<std::int64_t>{});
    case DataType::uint64:
      return f(std::type_identity<std::uint64_t>{});
    case DataType::float16:
      return f(std::type_identity<Float16>{});
    case DataType::bfloat16:
      return f(std::type_identity<BFloat16>{});
    case DataType::float32:
      return f(std::type_identity<float>{});
    case DataType::float64:
      return f(std::type_identity<double>{});
    case DataType::float8_e4m3:
      return f(std::type_identity<Float8E4M3>{});
    case DataType::float8_e5m2:
      break;
  }
  return f(std::type_identity<Float8E5M2>{});
}

namespace detail {
// The sizes in bytes, in the order of the enumerators of DataType. Every call needs a size, and a
// table is the fastest way to find it.
inline constexpr std::uint8_t sizes_of_types[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
}  // namespace detail

/// Returns the size of one element, in bytes.
constexpr std::size_t size_of(DataType type) {
  return detail::sizes_of_types[static_cast<std::size_t>(type)];
}

/// Returns whether the type is a float of 16 or 8 bits (rankmesh/base/narrow_float.hpp).
constexpr bool is_narrow_float(DataType type) {
  return type == DataType::float16 || type == DataType::bfloat16 || type == DataType::float8_e4m3 ||
         type == DataType::float8_e5m2;
}

/// Returns the name that messages and files use for the type, for example "float32" or "bfloat16".
RANKMESH_API std::string_view to_string(DataType type);

/// Maps a C++ type to its DataType. A program can specialise this template for its own type, for
/// example for a half-precision type. The type must have the same representation as the DataType.
template <class T>
struct DataTypeOf {};

namespace detail {
template <class T>
constexpr DataType integer_type() {
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return is_signed ? DataType::int8 : DataType::uint8;
  if constexpr (sizeof(T) == 2) return is_signed ? DataType::int16 : DataType::uint16;
  if constexpr (sizeof(T) == 4) return is_signed ? DataType::int32 : DataType::uint32;
  if constexpr (sizeof(T) == 8) return is_signed ? DataType::int64 : DataType::uint64;
}
}  // namespace detail

/// The data type of an integer type.
template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8)
struct DataTypeOf<T> {
  static constexpr DataType value = detail::integer_type<T>();  ///< The data type.
};
/// The data type of float.
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::float32;  ///< The data type.
};
/// The data type of double.
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::float64;  ///< The data type.
};
/// The data type of std::byte, which is combined as uint8.
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::uint8;  ///< The data type.
};

/// A C++ type that can be the element type of an operation.
template <class T>
concept Element = requires { DataTypeOf<std::remove_cv_t<T>>::value; };

}  // namespace rankmesh

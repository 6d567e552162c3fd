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

/// A float of 16 or 8 bits. rankmesh/base/narrow_float.hpp defines it.
template <class Format, class Bits>
struct NarrowFloat;

namespace detail {
/// The result of converting a value that is too large for the type. float16 and bfloat16 become
/// infinity. The 8-bit types become their largest finite value, as CUDA's conversions do by
/// default.
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
/// result of `f`. The result must have the same type for all T. Narrow floats are complete types
/// only where rankmesh/base/narrow_float.hpp is included.
template <class F>
constexpr decltype(auto) visit(DataType type, F&& f) {
  switch (type) {
    case DataType::int8:
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
// The sizes, in the order of DataType. They are stored in a table, because every call needs a size.
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

/// Returns the name of the type in messages and files: "float32", "bfloat16", ...
RANKMESH_API std::string_view to_string(DataType type);

/// Maps a C++ type to its DataType. Specialise this template for a type of your own, such as a half
/// type, that has the same representation as one of the DataTypes.
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

template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8)
struct DataTypeOf<T> {
  static constexpr DataType value = detail::integer_type<T>();
};
template <>
struct DataTypeOf<float> {
  static constexpr DataType value = DataType::float32;
};
template <>
struct DataTypeOf<double> {
  static constexpr DataType value = DataType::float64;
};
template <>
struct DataTypeOf<std::byte> {
  static constexpr DataType value = DataType::uint8;
};

/// A C++ type that can be the element type of an operation.
template <class T>
concept Element = requires { DataTypeOf<std::remove_cv_t<T>>::value; };

}  // namespace rankmesh

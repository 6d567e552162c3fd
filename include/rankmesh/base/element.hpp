// SPDX-License-Identifier: BSD-3-Clause
// The types whose values operations move and reduce: numbers, arrays of them, complex numbers,
// enumerations and structs.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

#include "rankmesh/base/data_type.hpp"

namespace rankmesh {

namespace detail {

/// Finds the innermost element type of nested arrays, and the number of such elements in one T.
template <class T>
struct ArrayParts {
  using Leaf = T;
  static constexpr std::size_t leaves = 1;
};
template <class T, std::size_t n>
struct ArrayParts<T[n]> {
  using Leaf = typename ArrayParts<T>::Leaf;
  static constexpr std::size_t leaves = n * ArrayParts<std::remove_cv_t<T>>::leaves;
};
template <class T, std::size_t n>
  requires(n > 0)
struct ArrayParts<std::array<T, n>> {
  using Leaf = typename ArrayParts<T>::Leaf;
  static constexpr std::size_t leaves = n * ArrayParts<std::remove_cv_t<T>>::leaves;
};

template <class T>
inline constexpr bool is_complex = false;
template <std::floating_point T>
  requires Element<T>
inline constexpr bool is_complex<std::complex<T>> = true;

}  // namespace detail

/// Whether T is an expression or a view of arrays, such as `a + b`: a copy of its bytes would copy
/// no values. The headers in rankmesh/adapt/ specialise it for other libraries, and a program may
/// specialise it for its own types.
template <class T>
inline constexpr bool refers_to_arrays = false;

/// The innermost element type of nested arrays: `float` for `float[3][4]` and for
/// `std::array<std::array<float, 4>, 3>`. For all other types, the type itself.
template <class T>
using LeafOf = typename detail::ArrayParts<std::remove_cv_t<T>>::Leaf;

/// A C++ type whose values an operation can copy from rank to rank: any trivially copyable type,
/// such as a number, a struct, an enumeration, `bool`, `std::complex` or an array of these. The
/// values of types without a DataType are copied as bytes. Pointers, views (ranges, and classes
/// with a `data_handle()` such as std::mdspan) and expressions (refers_to_arrays) are excluded,
/// because what they refer to would not be copied. rankmesh cannot see pointers inside a struct.
template <class T>
concept MovableElement =
    Element<T> || (std::is_object_v<T> && std::is_trivially_copyable_v<std::remove_cv_t<T>> &&
                   !std::is_empty_v<LeafOf<T>> && !std::is_pointer_v<LeafOf<T>> &&
                   !std::is_member_pointer_v<LeafOf<T>> && !std::is_null_pointer_v<LeafOf<T>> &&
                   !refers_to_arrays<LeafOf<T>> && !std::ranges::range<LeafOf<T>> &&
                   !requires(const LeafOf<T>& view) { view.data_handle(); });

/// A C++ type whose values a ReduceOp can combine: the types with a DataType, `std::complex<float>`
/// and `std::complex<double>` (sums and averages only), and arrays of these.
template <class T>
concept ReducibleElement = Element<LeafOf<T>> || detail::is_complex<LeafOf<T>>;

namespace detail {

/// Returns the DataType that operations use for values of the type Leaf, which is not an array.
template <class Leaf>
consteval DataType type_of_leaf() {
  if constexpr (Element<Leaf>) return DataTypeOf<Leaf>::value;
  if constexpr (is_complex<Leaf>) return DataTypeOf<typename Leaf::value_type>::value;
  if constexpr (std::is_enum_v<Leaf>) {
    if constexpr (Element<std::underlying_type_t<Leaf>>)
      return DataTypeOf<std::underlying_type_t<Leaf>>::value;
  }
  return DataType::uint8;
}

/// Says how operations treat one T: as `units` elements of the DataType `type`.
template <class T>
struct ElementUnits {
  static constexpr DataType type = type_of_leaf<LeafOf<T>>();
  static constexpr std::size_t per_leaf = sizeof(LeafOf<T>) / size_of(type);  ///< see LeafOf
  static constexpr std::size_t units = ArrayParts<std::remove_cv_t<T>>::leaves * per_leaf;
};

}  // namespace detail

}  // namespace rankmesh

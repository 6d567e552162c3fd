// SPDX-License-Identifier: BSD-3-Clause
// Operations take matrices, arrays, maps and blocks of Eigen.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#include <Eigen/Core>

#include "rankmesh/base/memory.hpp"

namespace rankmesh {

namespace detail {
template <class D>
std::type_identity<D> eigen_type(const Eigen::DenseBase<D>&);
template <class D>
std::true_type is_of_eigen(const Eigen::EigenBase<D>&);
std::false_type is_of_eigen(...);
template <class D>
std::true_type owns_values(const Eigen::PlainObjectBase<D>&);
std::false_type owns_values(...);
/// An expression of Eigen whose values are in memory.
template <class T>
concept EigenArray = requires(const T& array) {
  { eigen_type(array) } -> std::same_as<std::type_identity<T>>;
  requires(T::Flags & Eigen::DirectAccessBit) != 0;
};
}  // namespace detail

/// Everything else of Eigen, such as A + B, A.selfadjointView() or A.asDiagonal(), refers to
/// arrays.
template <class T>
  requires(decltype(detail::is_of_eigen(std::declval<const T&>()))::value && !detail::EigenArray<T>)
inline constexpr bool refers_to_arrays<T> = true;

/// Describes an array of Eigen. Vectors have one axis, and matrices two.
template <detail::EigenArray T>
struct MemoryOf<T> {
  /// Matrix and Array own their values; Map, Ref, Block and transpose() are views.
  static constexpr Ownership ownership = decltype(detail::owns_values(std::declval<T&>()))::value
                                             ? Ownership::owned
                                             : Ownership::viewed;
  static constexpr const char* copy =
      "copy the block to a matrix, as in Eigen::MatrixXf dense = block";  ///< See MemoryOf.
  /// Returns the address of the first element.
  template <class A>
  static auto* data(A& array) {
    return array.data();
  }
  /// Returns the axes, or the number of elements of a vector without gaps.
  static auto shape(const T& array) {
    if constexpr (!T::IsVectorAtCompileTime)
      return ArrayShape{{array.rows(), array.cols()}, {array.rowStride(), array.colStride()}};
    else if constexpr (T::InnerStrideAtCompileTime == 1)
      return static_cast<std::size_t>(array.size());
    else
      return ArrayShape{{array.size()}, {array.innerStride()}};
  }
};

}  // namespace rankmesh

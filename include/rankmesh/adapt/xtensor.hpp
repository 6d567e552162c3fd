// SPDX-License-Identifier: BSD-3-Clause
// Operations take arrays, tensors, adaptors and strided views of xtensor.
#pragma once

#include <cstddef>

#include <xtensor/xarray.hpp>
#include <xtensor/xexpression.hpp>
#include <xtensor/xfixed.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xutils.hpp>

#include "rankmesh/base/memory.hpp"

namespace rankmesh {

namespace detail {
template <class T>
inline constexpr bool is_xtensor_container = false;
template <class S, xt::layout_type l, class A, class Tag>
inline constexpr bool is_xtensor_container<xt::xarray_container<S, l, A, Tag>> = true;
template <class S, std::size_t n, xt::layout_type l, class Tag>
inline constexpr bool is_xtensor_container<xt::xtensor_container<S, n, l, Tag>> = true;
template <class T, class S, xt::layout_type l, bool sharable, class Tag>
inline constexpr bool is_xtensor_container<xt::xfixed_container<T, S, l, sharable, Tag>> = true;
template <class T>
concept XtensorArray =
    xt::is_xexpression<T>::value && xt::has_data_interface<T>::value && xt::has_strides<T>::value;
}  // namespace detail

/// Every other expression, such as `a + b`, is computed from arrays.
template <class T>
  requires(xt::is_xexpression<T>::value && !detail::XtensorArray<T>)
inline constexpr bool refers_to_arrays<T> = true;

/// Describes an expression of xtensor whose values are in memory.
template <detail::XtensorArray T>
struct MemoryOf<T> {
  /// Containers own their values; adaptors and views do not.
  static constexpr Ownership ownership =
      detail::is_xtensor_container<T> ? Ownership::owned : Ownership::viewed;
  static constexpr const char* copy = "pass xt::eval(view)";  ///< See MemoryOf.
  /// Returns the address of the first element.
  template <class A>
  static auto* data(A& array) {
    return array.data() + array.data_offset();
  }
  /// Returns the axes.
  static ArrayShape shape(const T& array) { return {array.shape(), array.strides()}; }
};

}  // namespace rankmesh

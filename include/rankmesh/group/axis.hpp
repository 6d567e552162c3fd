// SPDX-License-Identifier: BSD-3-Clause
// Blocks along any axis of an array.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "rankmesh/base/array_shape.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh {

namespace detail {
/// A shape without the number of an axis.
struct ShapeAlone {
  template <std::integral... Length>
  ShapeAlone(Length...);
};
}  // namespace detail

/// Describes the axis of an array along which the members' blocks lie; torch and vLLM call it
/// `dim`. The array is row-major, unless the type of an argument says that it is column-major
/// (MemoryOf). all_gather and gather concatenate the blocks along this axis. reduce_scatter and
/// scatter split the array along this axis. The shape is the shape of one member's block. In the
/// whole array, this axis is size() times as long as in a block, and all other axes are as long as
/// in a block.
///
/// Axis 0 causes no additional cost. With any other axis, each rank that has the whole array copies
/// the array once and needs scratch memory of the same size. On devices, the scratch memory is
/// allocated and freed in stream order. Therefore an operation along an axis other than 0 cannot be
/// part of an NcclGroup.
class RANKMESH_API Axis {
 public:
  /// Creates an axis of a block.
  /// @param shape  The lengths of one member's block in elements. In a row-major array, the axis
  ///               with the largest stride comes first.
  /// @param axis   A number from 0 to shape.size()-1. Negative numbers count from the end.
  /// @throws UsageError if the shape does not have this axis, or if a length is negative.
  Axis(std::span<const std::int64_t> shape, std::int64_t axis);
  /// Does the same for a list of sizes in braces.
  Axis(std::initializer_list<std::int64_t> shape, std::int64_t axis)
      : Axis{std::span{shape.begin(), shape.size()}, axis} {}
  // Compilers show these comments.
  // clang-format off
  /// @cond  These constructors only refuse calls.
  Axis(detail::ShapeAlone) = delete;  // write Axis{{rows, columns}, 1}, with the number of the axis
  template <std::integral... Number>
    requires(sizeof...(Number) > 1)
  Axis(Number...) = delete;  // write Axis{{rows, columns}, 1}, with the shape in braces of its own
  /// @endcond
  // clang-format on

  /// Returns a copy of the call with blocks along this axis.
  /// @param units  The number of elements of the call's buffers that one element of the array
  ///               became; 2 for complex numbers.
  /// @param is_column_major  See is_mirrored().
  /// @throws UsageError unless the block of the call has as many elements as the shape.
  [[nodiscard]] Call along(Call call, std::size_t units = 1, bool is_column_major = false) const;
  /// Returns whether an array is column-major. Its slower axes are then those behind this axis.
  /// @throws UsageError unless it is row-major or column-major.
  [[nodiscard]] bool is_mirrored(const ArrayShape& array) const;

 private:
  std::int64_t rows_ = 1;      // the product of the lengths before the axis
  std::int64_t inner_ = 1;     // the product of the lengths behind the axis
  std::int64_t elements_ = 1;  // the number of elements of one member's block
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Blocks along any axis of an array.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rankmesh/export.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh {

/// Describes the axis of a row-major array along which the members' blocks lie. all_gather and
/// gather concatenate the blocks along this axis; reduce_scatter and scatter split the array along
/// this axis, which torch and vLLM call `dim`. The shape describes one member's block. In the whole
/// array, this axis is size() times as long as in a block, and the other axes have the same
/// lengths.
///
/// Axis 0 costs nothing. Any other axis costs a copy of the whole array on each rank that has the
/// whole array, and scratch memory of the same size. On devices, the scratch memory is allocated
/// and freed in stream order, so such calls cannot be part of an NcclGroup.
class RANKMESH_API Axis {
 public:
  /// Creates an axis of a block.
  /// @param shape  The lengths of one member's block in elements. The slowest axis comes first.
  /// @param axis   0 to shape.size()-1; negative numbers count from the end.
  /// @throws UsageError  The shape has no such axis, or a negative length.
  Axis(std::span<const std::int64_t> shape, std::int64_t axis);
  Axis(std::initializer_list<std::int64_t> shape, std::int64_t axis)
      : Axis{std::span{shape.begin(), shape.size()}, axis} {}

  /// Returns the call with its blocks along this axis.
  /// @throws UsageError  The block of the call does not have the number of elements of the shape.
  [[nodiscard]] Call along(Call call) const;

 private:
  std::int64_t rows_ = 1;      // the product of the lengths before the axis
  std::int64_t elements_ = 1;  // of one member's block
};

}  // namespace rankmesh

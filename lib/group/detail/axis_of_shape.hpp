// SPDX-License-Identifier: BSD-3-Clause
// One axis of an array.
#pragma once

#include <cstdint>
#include <span>

namespace rankmesh::detail {

/// How an axis divides a row-major array.
struct AxisOfShape {
  std::int64_t rows;    ///< The product of the lengths before the axis.
  std::int64_t length;  ///< The length of the axis.
  std::int64_t inner;   ///< The product of the lengths after the axis.
};
/// @param axis  Negative numbers count from the end.
/// @throws UsageError if the shape does not have this axis, or a length is negative.
AxisOfShape axis_of(std::span<const std::int64_t> shape, std::int64_t axis);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/axis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/axis_of_shape.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {

detail::AxisOfShape detail::axis_of(std::span<const std::int64_t> shape, std::int64_t axis) {
  const auto dimensions = std::ssize(shape);
  if (axis < -dimensions || axis >= dimensions)
    throw UsageError{
        fmt::format("the axis {} does not exist: the array has {} dimensions", axis, dimensions),
        "axes are numbered from 0; negative numbers count from the end"};
  const std::int64_t chosen = axis < 0 ? axis + dimensions : axis;
  AxisOfShape of{1, shape[static_cast<std::size_t>(chosen)], 1};
  for (std::int64_t i = 0; i < dimensions; ++i) {
    const std::int64_t length = shape[static_cast<std::size_t>(i)];
    if (length < 0)
      throw UsageError{fmt::format("the shape [{}] has a negative length", fmt::join(shape, ", ")),
                       "use lengths of 0 or more"};
    if (i != chosen) (i < chosen ? of.rows : of.inner) *= length;
  }
  return of;
}

Axis::Axis(std::span<const std::int64_t> shape, std::int64_t axis) {
  const auto [rows, length, inner] = detail::axis_of(shape, axis);
  rows_ = rows;
  inner_ = inner;
  elements_ = rows * length * inner;
}

bool Axis::is_mirrored(const ArrayShape& array) const {
  if (array.is_row_major()) return false;
  if (array.is_column_major()) return true;
  throw UsageError{fmt::format("the array {} is neither row-major nor column-major, so it has no "
                               "blocks along an Axis",
                               array.to_string()),
                   "pass a contiguous copy"};
}

Call Axis::along(Call call, std::size_t units, bool is_column_major) const {
  const bool of_in = gathers(call.operation);
  const std::int64_t count = of_in ? call.in.count : call.out.count;
  const std::int64_t block = count / static_cast<std::int64_t>(units);
  if (block != elements_)
    throw UsageError{fmt::format("{} along an axis: {} has {} elements, but the shape has {}",
                                 to_string(call.operation), of_in ? "in" : "out", block, elements_),
                     "give the shape of one member's block"};
  call.rows = elements_ == 0 ? 1 : is_column_major ? inner_ : rows_;
  return call;
}

}  // namespace rankmesh

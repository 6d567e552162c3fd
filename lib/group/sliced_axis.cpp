// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/sliced_axis.hpp"

#include <vector>

#include <fmt/format.h>

#include "detail/axis_of_shape.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {

SlicedAxis::SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis, std::int64_t members)
    : SlicedAxis{shape, axis, Blocks::even(detail::axis_of(shape, axis).length, members)} {}

SlicedAxis::SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis,
                       const Blocks& lengths) {
  const auto [rows, whole, inner] = detail::axis_of(shape, axis);
  std::int64_t sum = 0;
  std::vector<std::int64_t> counts;
  for (const std::int64_t length : lengths.counts()) {
    if (length < 0)
      throw UsageError{fmt::format("a part of the axis {} has the length {}", axis, length),
                       "use lengths of 0 or more"};
    sum += length;
    counts.push_back(rows * length * inner);
  }
  if (sum != whole)
    throw UsageError{
        fmt::format("the parts of the axis {} have {} indices together, but the shape has {}", axis,
                    sum, whole),
        "give the shape of the whole array, and one length per member"};
  elements_ = rows * whole * inner;
  static_cast<Blocks&>(*this) = Blocks{counts, rows, 1};
}

}  // namespace rankmesh

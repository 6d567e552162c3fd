// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/base/array_shape.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

ArrayShape ArrayShape::row_major(std::span<const std::int64_t> lengths) {
  ArrayShape shape;
  for (const std::int64_t length : lengths) shape.add_axis(length, 1);
  for (std::size_t k = lengths.size(); k-- > 1;)
    shape.strides_[k - 1] = shape.strides_[k] * std::max<std::int64_t>(shape.lengths_[k], 1);
  return shape;
}

std::int64_t ArrayShape::count() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t length : lengths()) count *= length;
  return count;
}

std::int64_t ArrayShape::reach() const noexcept {
  if (count() == 0) return 0;
  std::int64_t reach = 1;
  for (std::size_t k = 0; k < axes_; ++k)
    reach += (lengths_[k] - 1) * std::max<std::int64_t>(strides_[k], 0);
  return reach;
}

// Follows the axes from the one with the stride 1 to the slowest one.
bool ArrayShape::has_no_gaps() const noexcept {
  if (count() == 0 || follows(true)) return true;
  std::int64_t inner = 1;  // the elements of the axes found so far
  for (std::size_t found = 0, left = 0; found < axes_; ++found, left = 0) {
    std::size_t next = axes_;
    for (std::size_t k = 0; k < axes_; ++k) {
      if (lengths_[k] == 1 || strides_[k] < inner) continue;
      ++left;
      if (strides_[k] == inner) next = k;
    }
    if (left == 0) break;
    if (next == axes_) return false;
    inner *= lengths_[next];
  }
  return inner == count();
}

bool ArrayShape::follows(bool from_last) const noexcept {
  std::int64_t inner = 1;
  for (std::size_t i = 0; i < axes_; ++i) {
    const std::size_t k = from_last ? axes_ - 1 - i : i;
    if (lengths_[k] != 1 && strides_[k] != inner) return false;
    inner *= lengths_[k];
  }
  return true;
}
bool ArrayShape::is_row_major() const noexcept { return count() == 0 || follows(true); }
bool ArrayShape::is_column_major() const noexcept { return count() == 0 || follows(false); }
ArrayOrder ArrayShape::order() const noexcept {
  if (is_row_major() == is_column_major()) return ArrayOrder::any;
  return is_row_major() ? ArrayOrder::row_major : ArrayOrder::column_major;
}

std::string ArrayShape::to_string() const {
  return fmt::format("[{}] with the strides [{}]", fmt::join(lengths(), ","),
                     fmt::join(strides(), ","));
}

void ArrayShape::refuse_axis(std::int64_t length) const {
  if (length < 0)
    throw UsageError{fmt::format("axis {} of an array has the length {}", axes_, length),
                     "use lengths of 0 or more"};
  throw UsageError{fmt::format("an array has more than {} axes", most_axes),
                   "pass it with fewer axes: merge those without gaps between them"};
}
void ArrayShape::refuse_strides() {
  throw UsageError{"an array has not as many strides as axes", "give one stride per axis"};
}

void detail::refuse_gaps(const ArrayShape& shape, const char* hint) {
  throw UsageError{fmt::format("the array {} is not contiguous", shape.to_string()), hint};
}

void detail::refuse_order(const ArrayShape& shape, const char* hint) {
  throw UsageError{fmt::format("the array {} is not row-major", shape.to_string()), hint};
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/sliced_axis.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh {

SlicedAxis::SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis,
                       std::int64_t members) {
  const auto dimensions = static_cast<std::int64_t>(shape.size());
  if (axis < -dimensions || axis >= dimensions)
    throw UsageError{
        fmt::format("the axis {} does not exist: the array has {} dimensions", axis, dimensions),
        "axes are numbered from 0; negative numbers count from the end"};
  if (std::ranges::any_of(shape, [](std::int64_t length) { return length < 0; }))
    throw UsageError{fmt::format("the shape [{}] has a negative length", fmt::join(shape, ", ")),
                     "use lengths of 0 or more"};
  const auto chosen = static_cast<std::size_t>(axis < 0 ? axis + dimensions : axis);
  const auto product = [](std::span<const std::int64_t> lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{1}, std::multiplies<>{});
  };
  rows_ = product(shape.first(chosen));
  inner_ = product(shape.subspan(chosen + 1));
  length_ = shape[chosen];
  row_ = length_ * inner_;
  std::vector<std::int64_t> lengths;
  for (std::int64_t k = 0; k < members; ++k)
    lengths.push_back(Slice::of(length_, members, k).size());
  set_lengths(lengths);
}

SlicedAxis::SlicedAxis(std::span<const std::int64_t> shape, std::int64_t axis,
                       const Blocks& lengths)
    : SlicedAxis{shape, axis, std::int64_t{1}} {
  std::int64_t sum = 0;
  for (const std::int64_t length : lengths.counts()) {
    if (length < 0)
      throw UsageError{fmt::format("a part of the axis {} has the length {}", axis, length),
                       "use lengths of 0 or more"};
    sum += length;
  }
  if (sum != length_)
    throw UsageError{
        fmt::format("the parts of the axis {} have {} indices together, but the shape has {}", axis,
                    sum, length_),
        "give the shape of the whole array, and one length per member"};
  set_lengths(lengths.counts());
}

void SlicedAxis::set_lengths(const std::vector<std::int64_t>& lengths) {
  lengths_ = lengths;
  std::vector<std::int64_t> counts;
  for (const std::int64_t length : lengths) counts.push_back(rows_ * length * inner_);
  blocks_ = Blocks{counts};
}

// Calls `copy` with the offset in the whole array, the offset in the blocks and the number of
// elements of every contiguous piece.
template <class Copy>
void SlicedAxis::for_each_piece(Copy&& copy) const {
  std::int64_t before = 0;  // indices along the axis that belong to earlier members
  std::int64_t in_blocks = 0;
  for (const std::int64_t length : lengths_) {
    const std::int64_t piece = length * inner_;
    for (std::int64_t row = 0; piece != 0 && row < rows_; ++row, in_blocks += piece)
      copy(static_cast<std::size_t>(row * row_ + before * inner_),
           static_cast<std::size_t>(in_blocks), static_cast<std::size_t>(piece));
    before += length;
  }
}

void SlicedAxis::require_elements(std::int64_t units, std::size_t units_per_element) const {
  const std::int64_t count = units / static_cast<std::int64_t>(units_per_element);
  if (count != elements())
    throw UsageError{
        fmt::format("the whole array has {} elements, but the shape has {}", count, elements()),
        "give the shape of the whole array"};
}

void SlicedAxis::refuse_device() {
  throw UsageError{"an array in device memory is divided along an axis other than the first",
                   "divide the array along the first axis, or copy the array to the host"};
}

void SlicedAxis::split(const std::byte* whole, std::byte* blocks,
                       std::size_t bytes_of_element) const {
  for_each_piece([&](std::size_t in_whole, std::size_t in_blocks, std::size_t count) {
    std::memcpy(blocks + in_blocks * bytes_of_element, whole + in_whole * bytes_of_element,
                count * bytes_of_element);
  });
}

void SlicedAxis::join(const std::byte* blocks, std::byte* whole,
                      std::size_t bytes_of_element) const {
  for_each_piece([&](std::size_t in_whole, std::size_t in_blocks, std::size_t count) {
    std::memcpy(whole + in_whole * bytes_of_element, blocks + in_blocks * bytes_of_element,
                count * bytes_of_element);
  });
}

}  // namespace rankmesh

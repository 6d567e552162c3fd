// SPDX-License-Identifier: BSD-3-Clause
// Boxes of a three-dimensional array.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <rankmesh/layout/slice.hpp>

using Shape = std::array<std::size_t, 3>;

/// The indices from begin to end - 1 along one axis.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

/// Returns part k when n indices are divided into equal parts, as rankmesh divides them.
inline Range part_of(std::size_t n, std::int64_t parts, std::int64_t k) {
  const auto part = rankmesh::Slice::of(static_cast<std::int64_t>(n), parts, k);
  return {static_cast<std::size_t>(part.begin()), static_cast<std::size_t>(part.end())};
}

/// A part of the array that one rank has, stored in row-major order.
struct Box {
  std::array<Range, 3> ranges;
  [[nodiscard]] const Range& operator[](std::size_t axis) const { return ranges[axis]; }
  [[nodiscard]] std::size_t size() const {
    return ranges[0].size() * ranges[1].size() * ranges[2].size();
  }
  /// Returns the place of an element in the memory of the box.
  [[nodiscard]] std::size_t at(std::size_t i, std::size_t j, std::size_t k) const {
    return ((i - ranges[0].begin) * ranges[1].size() + j - ranges[1].begin) * ranges[2].size() + k -
           ranges[2].begin;
  }
};

inline Box intersection(const Box& a, const Box& b) {
  Box common;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t begin = std::max(a[axis].begin, b[axis].begin);
    common.ranges[axis] = {begin, std::max(begin, std::min(a[axis].end, b[axis].end))};
  }
  return common;
}

/// Calls `use(i, j, k, n)` for each run of n elements of `part` that follow each other in memory.
template <class Use>
void for_each_run(const Box& part, Use&& use) {
  if (part.size() == 0) return;
  for (std::size_t i = part[0].begin; i < part[0].end; ++i)
    for (std::size_t j = part[1].begin; j < part[1].end; ++j)
      use(i, j, part[2].begin, part[2].size());
}

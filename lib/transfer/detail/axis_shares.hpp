// SPDX-License-Identifier: BSD-3-Clause
// The indices of an axis that each rank has.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "rankmesh/layout/layout.hpp"
#include "rankmesh/transfer/axis_placement.hpp"

namespace rankmesh::detail {

/// The indices of an axis that the ranks with the same coordinates along its dimensions have.
struct AxisShare {
  std::vector<AxisRun> runs;       ///< in the order of the memory
  std::vector<AxisRun> by_global;  ///< in ascending order of their indices
  std::int64_t count = 0;          ///< the number of indices
};

/// Indices that exactly the same shares have.
struct AxisClass {
  std::vector<std::int64_t> shares;  ///< ascending
  std::vector<IndexRange> ranges;    ///< ascending and not adjacent
};

/// All shares of an axis. The number of a share is the sum of the products coordinate * weight.
struct AxisShares {
  std::vector<std::size_t> dimensions;  ///< those dimensions of the layout that divide the axis
  std::vector<std::int64_t> weights;    ///< one per dimension
  std::vector<AxisShare> shares;
  std::vector<AxisClass> classes;  ///< a partition of the indices that any share has
  std::vector<std::vector<std::int64_t>> classes_of;  ///< the classes that make up each share
  bool is_partition = true;  ///< no index is in several shares, so each share is one class

  /// Returns the coordinate of a share along `dimensions[d]`.
  [[nodiscard]] std::int64_t coordinate(std::int64_t share, std::size_t d,
                                        const Layout& layout) const {
    return share / weights[d] % layout.dimensions()[dimensions[d]].size;
  }
  /// Returns the number of the class that contains an index, or -1 if no share has it.
  [[nodiscard]] std::int64_t class_of(std::int64_t index) const {
    for (std::size_t c = 0; c < classes.size(); ++c)
      for (const IndexRange& range : classes[c].ranges)
        if (range.first <= index && index < range.end()) return static_cast<std::int64_t>(c);
    return -1;
  }
};

/// Throws an error about the text at a position.
using Refuse =
    std::function<void(std::size_t position, const std::string& reason, const std::string& hint)>;

/// Divides an axis. Every dimension must be in the layout.
/// @param refuse  called if the sizes of a split do not add up, if a list is outside the divided
/// indices or has an index twice, or if there are too many runs. It must throw.
AxisShares divide_axis(const AxisPlacement& axis, const Layout& layout, const Refuse& refuse);

/// The greatest number of shares of an axis, and of their runs.
inline constexpr std::int64_t most_runs = std::int64_t{1} << 20;

}  // namespace rankmesh::detail

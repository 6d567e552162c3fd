// SPDX-License-Identifier: BSD-3-Clause
// How one axis of a tensor is divided by the dimensions of a mesh, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Consecutive indices of an axis.
struct IndexRange {
  std::int64_t first = 0;  ///< The first index.
  std::int64_t count = 0;  ///< The number of indices.
  /// Returns the last index, plus 1.
  [[nodiscard]] std::int64_t end() const { return first + count; }
  /// Returns whether all fields are equal.
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The rule by which a dimension of size k divides n indices into k shares. The share with the
/// number c belongs to the coordinate c of the dimension.
enum class ShareRule : std::uint8_t {
  even,     ///< contiguous shares; the first n mod k have one index more, as in Slice
  ceiling,  ///< contiguous shares of ceil(n/k) indices; the last ones may be smaller or empty
  sizes,    ///< contiguous shares of the given sizes
  cyclic,   ///< blocks of the given size are dealt to the coordinates in turn
  lists,    ///< each coordinate has a list of indices; lists may overlap or leave indices out
};

/// One dimension of the mesh that divides indices.
struct AxisSplit {
  std::string dimension;                         ///< The name of the dimension.
  ShareRule rule = ShareRule::even;              ///< The rule.
  std::int64_t block = 1;                        ///< ShareRule::cyclic: the size of a block.
  std::vector<std::int64_t> sizes{};             ///< ShareRule::sizes: one size per coordinate.
  std::vector<std::vector<IndexRange>> lists{};  ///< ShareRule::lists: one list per coordinate.
  std::size_t position = 0;  ///< The byte offset in the text, which errors report.
};

/// Consecutive indices of an axis that are divided separately, for example the rows of the queries
/// in a fused axis. The first split divides the range; each further split divides every share of
/// the split before it. Without splits, every rank has the whole range.
struct AxisSegment {
  IndexRange range;                 ///< The indices.
  std::vector<AxisSplit> splits{};  ///< The dimensions that divide them, in order.
};

/// The places of the indices of one axis. A rank has its shares of all segments, one after the
/// other in the order of the segments. An axis that is not fused has a single segment.
using AxisPlacement = std::vector<AxisSegment>;

/// Indices of an axis that one rank has: `count` consecutive indices that begin with `global` in
/// the whole axis and with `local` on the rank.
struct AxisRun {
  std::int64_t global = 0;  ///< The first index in the whole axis.
  std::int64_t local = 0;   ///< The first index on the rank.
  std::int64_t count = 0;   ///< The number of indices.
  /// Returns whether all fields are equal.
  friend bool operator==(const AxisRun&, const AxisRun&) = default;
};

}  // namespace rankmesh

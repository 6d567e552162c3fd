// SPDX-License-Identifier: BSD-3-Clause
// The indices that a class of one axis has in common with a class of another.
#pragma once

#include <cstdint>
#include <vector>

#include "transfer/detail/axis_shares.hpp"
#include "transfer/detail/strided_runs.hpp"

namespace rankmesh::detail {

/// A class of the other axis, and the number of common indices.
struct CommonIndices {
  std::int64_t other = 0;
  std::int64_t count = 0;
  /// In AxisOverlap::targets_of: the number of times that shares of the target need the common
  /// indices of this class, and of all classes before it in the list.
  std::int64_t needed = 0, needed_before = 0;
};

/// The classes of the same axis before and after a transfer. The lists are in ascending order.
struct AxisOverlap {
  std::vector<std::vector<CommonIndices>> targets_of;  ///< for each class of the source
  std::vector<std::vector<CommonIndices>> sources_of;  ///< for each class of the target
  std::int64_t missing = -1;  ///< an index that the target needs and the source lacks, or -1
};

AxisOverlap overlap_of(const AxisShares& from, const AxisShares& to);

/// Returns the common indices number `begin` to `end` of two classes, in ascending order of the
/// indices. The numbers of a strip are local indices.
/// @param holder  the sender's share, which contains the class `source`.
/// @param receiver  the receiver's share, which contains the class `target`.
std::vector<Strip> common_runs(const AxisClass& source, const AxisShare& holder,
                               const AxisClass& target, const AxisShare& receiver,
                               std::int64_t begin, std::int64_t end);

}  // namespace rankmesh::detail

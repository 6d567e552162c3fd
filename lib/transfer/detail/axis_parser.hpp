// SPDX-License-Identifier: BSD-3-Clause
// Reads how an axis is divided.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/transfer/axis_placement.hpp"
#include "transfer/detail/place_cursor.hpp"

namespace rankmesh::detail {

/// The part of the grammar of a place that describes an axis.
class AxisParser : public PlaceCursor {
 protected:
  using PlaceCursor::PlaceCursor;

  /// Reads the segments of an axis. The dimensions are appended to `names_`.
  AxisPlacement axis(std::int64_t size);

  std::vector<std::pair<std::string, std::size_t>> names_;  ///< dimensions and their positions

 private:
  AxisSegment segment(std::int64_t first, std::int64_t size, bool is_first, bool& has_ranges);
  void check_overlap(const AxisPlacement& axis, std::size_t position) const;
  std::vector<AxisSplit> share();
  void rule(AxisSplit& split);
  std::vector<IndexRange> list();
};

}  // namespace rankmesh::detail

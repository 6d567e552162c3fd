// SPDX-License-Identifier: BSD-3-Clause
// A sequence of indices, stored as ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rankmesh/transfer/axis_placement.hpp"

namespace rankmesh::detail {

/// Indices in any order. Consecutive indices that are neighbours in the sequence form one range.
class IndexSequence {
 public:
  void append(IndexRange range) {
    if (range.count == 0) return;
    if (!ranges_.empty() && ranges_.back().end() == range.first)
      ranges_.back().count += range.count;
    else
      ranges_.push_back(range);
    if (ends_.size() < ranges_.size()) ends_.push_back(size());
    ends_.back() += range.count;
  }
  /// Appends the entries from `begin` to `begin + count` of another sequence.
  void append(const IndexSequence& other, std::int64_t begin, std::int64_t count) {
    if (count == 0) return;
    auto at = static_cast<std::size_t>(std::ranges::upper_bound(other.ends_, begin) -
                                       other.ends_.begin());
    while (count > 0) {
      const IndexRange& range = other.ranges_[at];
      const std::int64_t skipped = begin - (other.ends_[at] - range.count);
      const std::int64_t taken = std::min(count, range.count - skipped);
      append({range.first + skipped, taken});
      begin += taken;
      count -= taken;
      ++at;
    }
  }
  [[nodiscard]] std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] const std::vector<IndexRange>& ranges() const { return ranges_; }

 private:
  std::vector<IndexRange> ranges_;
  std::vector<std::int64_t> ends_;  // the number of indices up to and with each range
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// A place in the blocks of a message, from which it goes on later.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// Contiguous runs at equal distances. All numbers are elements.
struct Strip {
  std::int64_t source = 0, target = 0;            ///< The offsets of the first run.
  std::int64_t length = 0;                        ///< The length of each run.
  std::int64_t count = 0;                         ///< The number of runs.
  std::int64_t source_step = 0, target_step = 0;  ///< The distances between the runs.
  [[nodiscard]] std::int64_t elements() const { return length * count; }
};

/// Goes through blocks in their order, in portions of any size.
class BlockCursor {
 public:
  /// Begins with the first block. The blocks must exist as long as the cursor is used.
  void begin(const std::vector<TransferBlock>& blocks) {
    blocks_ = &blocks;
    block_ = 0;
    enter();
  }

  /// Returns the next elements: the innermost loop, or a part of it.
  /// @param most  The number of elements to return at most, at least 1. The blocks must have at
  ///              least one more element.
  [[nodiscard]] Strip peek(std::int64_t most) const {
    const TransferBlock& block = (*blocks_)[block_];
    Strip strip{block.source + offset_, block.target + offset_, 0, 1, 0, 0};
    for (std::size_t i = 0; i < block.loops.size(); ++i) {
      strip.source += counters_[i] * block.loops[i].source_stride;
      strip.target += counters_[i] * block.loops[i].target_stride;
    }
    const std::int64_t left = block.length - offset_;
    strip.length = std::min(left, most);
    if (strip.length == block.length && !block.loops.empty()) {
      const TransferLoop& innermost = block.loops.back();
      strip.count = std::min(innermost.count - counters_.back(), most / block.length);
      strip.source_step = innermost.source_stride;
      strip.target_step = innermost.target_stride;
    }
    return strip;
  }

  /// Passes the elements that peek() has returned.
  void pass(const Strip& strip) {
    const TransferBlock& block = (*blocks_)[block_];
    offset_ += strip.length;
    if (offset_ < block.length) return;
    offset_ = 0;
    std::int64_t runs = strip.count;
    for (std::size_t i = block.loops.size(); i-- > 0; runs = 1) {
      counters_[i] += runs;
      if (counters_[i] < block.loops[i].count) return;
      counters_[i] = 0;
    }
    ++block_;
    enter();
  }

 private:
  // Enters the next block that has elements, if there is one.
  void enter() {
    const auto is_empty = [](const TransferBlock& block) { return block.element_count() == 0; };
    while (block_ < blocks_->size() && is_empty((*blocks_)[block_])) ++block_;
    offset_ = 0;
    if (block_ < blocks_->size()) counters_.assign((*blocks_)[block_].loops.size(), 0);
  }

  const std::vector<TransferBlock>* blocks_ = nullptr;
  std::size_t block_ = 0;
  std::int64_t offset_ = 0;             // in the run
  std::vector<std::int64_t> counters_;  // of the loops
};

}  // namespace rankmesh::exchange::detail

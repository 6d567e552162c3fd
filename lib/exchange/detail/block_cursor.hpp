// SPDX-License-Identifier: BSD-3-Clause
// A position in the blocks of a message, from which the caller continues later.
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

/// Visits blocks in portions of any size. Neighbouring blocks with the same outer loops form a
/// group. The cursor visits all blocks of the group for a few turns (iterations) of these loops,
/// and then for the next turns. In this way it follows the rows of an array whose columns are
/// divided into many blocks. The order depends only on the blocks, so the sender and the receiver
/// use the same order.
class BlockCursor {
 public:
  /// Begins with the first block. The blocks must exist as long as the cursor is used.
  void begin(const std::vector<TransferBlock>& blocks) {
    blocks_ = &blocks;
    block_ = 0;
    enter();
  }

  /// Returns the next elements: the innermost loop, or a part of it.
  /// @param most  The maximum number of elements to return, at least 1. The blocks must have at
  ///              least one more element.
  [[nodiscard]] Strip peek(std::int64_t most) const {
    const TransferBlock& block = (*blocks_)[block_];
    Strip strip{block.source + source_ + offset_, block.target + target_ + offset_, 0, 1, 0, 0};
    strip.length = std::min(block.length - offset_, most);
    if (!block.loops.empty() && strip.length == block.length) {
      const std::size_t innermost = block.loops.size() - 1;
      const std::int64_t left = end_of(block, innermost) - counters_[innermost];
      strip.count = left * block.length <= most ? left : most / block.length;
      strip.source_step = block.loops[innermost].source_stride;
      strip.target_step = block.loops[innermost].target_stride;
    }
    return strip;
  }

  /// Passes the elements that peek() has returned.
  void pass(const Strip& strip) {
    const TransferBlock& block = (*blocks_)[block_];
    offset_ += strip.length;
    if (offset_ < block.length) return;
    offset_ = 0;
    if (has_next_turn(block, block.loops.size(), outer_ == 0 ? 0 : outer_ - 1, strip.count)) return;
    if (++block_ < end_) return;
    block_ = begin_;
    if (outer_ > 0 && has_next_turns()) return;
    block_ = end_;
    enter();
  }

 private:
  static constexpr std::int64_t turns_of_group = 16;

  // The turns of a loop that the present block goes through.
  [[nodiscard]] std::int64_t begin_of(std::size_t loop) const {
    return loop + 1 == outer_ ? first_turn_ : 0;
  }
  [[nodiscard]] std::int64_t end_of(const TransferBlock& block, std::size_t loop) const {
    return loop + 1 == outer_ ? last_turn_ : block.loops[loop].count;
  }
  void turn(const TransferBlock& block, std::size_t loop, std::int64_t turns) {
    source_ += turns * block.loops[loop].source_stride;
    target_ += turns * block.loops[loop].target_stride;
    counters_[loop] += turns;
  }
  // Advances the loops from `first` to `last`, the innermost one by `turns`. Returns false if all
  // of them have ended; they then begin again.
  bool has_next_turn(const TransferBlock& block, std::size_t last, std::size_t first,
                     std::int64_t turns) {
    for (std::size_t i = last; i-- > first; turns = 1) {
      turn(block, i, turns);
      if (counters_[i] < end_of(block, i)) return true;
      turn(block, i, begin_of(i) - counters_[i]);
    }
    return false;
  }
  // Advances the loops that the blocks of the group share, after all blocks have gone through the
  // present turns. Returns false if the loops have ended.
  bool has_next_turns() {
    const TransferBlock& block = (*blocks_)[begin_];
    const std::int64_t count = block.loops[outer_ - 1].count;
    const bool is_at_end = last_turn_ == count;
    const std::int64_t next = is_at_end ? 0 : last_turn_;
    turn(block, outer_ - 1, next - first_turn_);
    first_turn_ = next;
    last_turn_ = std::min(next + turns_of_group, count);
    return !is_at_end || has_next_turn(block, outer_ - 1, 0, 1);
  }

  // Enters the next group of blocks that have elements, if there is one.
  void enter() {
    while (block_ < blocks_->size() && is_empty(block_)) ++block_;
    offset_ = 0;
    begin_ = block_;
    end_ = block_ + 1;
    outer_ = 0;
    source_ = target_ = first_turn_ = last_turn_ = 0;
    if (block_ >= blocks_->size()) return;
    if (has_neighbour()) outer_ = common_loops(begin_, end_);
    if (outer_ > 0)
      while (has_neighbour() && common_loops(begin_, end_) >= outer_) ++end_;
    if (outer_ > 0)
      last_turn_ = std::min(turns_of_group, (*blocks_)[begin_].loops[outer_ - 1].count);
    std::size_t loops = 0;
    for (std::size_t b = begin_; b < end_; ++b) loops = std::max(loops, (*blocks_)[b].loops.size());
    counters_.assign(loops, 0);
  }
  [[nodiscard]] bool is_empty(std::size_t block) const {
    return (*blocks_)[block].element_count() == 0;
  }
  [[nodiscard]] bool has_neighbour() const { return end_ < blocks_->size() && !is_empty(end_); }
  // Returns the number of equal outermost loops.
  [[nodiscard]] std::size_t common_loops(std::size_t a, std::size_t b) const {
    const auto& first = (*blocks_)[a].loops;
    const auto& second = (*blocks_)[b].loops;
    const auto ends = std::ranges::mismatch(first, second);
    return static_cast<std::size_t>(ends.in1 - first.begin());
  }

  const std::vector<TransferBlock>* blocks_ = nullptr;
  std::size_t block_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // of the group
  std::size_t outer_ = 0;            // the number of loops that the blocks of the group share
  std::int64_t first_turn_ = 0, last_turn_ = 0;  // of the innermost one of these loops
  std::int64_t source_ = 0, target_ = 0;         // the sums of the strides of all turns so far
  std::int64_t offset_ = 0;                      // in the run
  std::vector<std::int64_t> counters_;           // of the loops
};

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// The strips of a message of a plan, and a position in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "block_cursor.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// The strips of a message. Few strips are computed once, for all tensors that share the message.
/// Many strips are computed from the blocks whenever they are visited.
class MessageStrips {
 public:
  /// @param message  It must exist as long as this object.
  explicit MessageStrips(const TransferMessage& message) : blocks_{&message.blocks} {
    constexpr std::size_t most_kept = 16;
    BlockCursor cursor;
    cursor.begin(message.blocks);
    std::int64_t left = message.elements;
    for (; left > 0 && kept_.size() < most_kept; left -= kept_.back().elements()) {
      kept_.push_back(cursor.peek(left));
      cursor.pass(kept_.back());
    }
    if (left > 0) kept_.clear();
    kept_.shrink_to_fit();
  }

  /// Returns the strips; nothing if there are many.
  [[nodiscard]] const std::vector<Strip>& kept() const { return kept_; }
  [[nodiscard]] const std::vector<TransferBlock>& blocks() const { return *blocks_; }

 private:
  const std::vector<TransferBlock>* blocks_;
  std::vector<Strip> kept_;  // empty if there are too many
};

/// Visits strips in portions of any size. The order of the elements is that of BlockCursor.
class StripCursor {
 public:
  /// Begins with the first strip. The strips must exist as long as the cursor is used.
  void begin(const MessageStrips& strips) {
    strips_ = strips.kept().data();
    run_ = offset_ = 0;
    if (strips.kept().empty()) {
      strips_ = nullptr;
      blocks_.begin(strips.blocks());
    }
  }

  /// See BlockCursor::peek().
  [[nodiscard]] Strip peek(std::int64_t most) const {
    if (strips_ == nullptr) return blocks_.peek(most);
    Strip strip = *strips_;
    if (run_ == 0 && offset_ == 0 && strip.elements() <= most) return strip;
    strip.source += run_ * strip.source_step + offset_;
    strip.target += run_ * strip.target_step + offset_;
    const std::int64_t whole = strip.length;
    strip.length = std::min(whole - offset_, most);
    strip.count = strip.length < whole ? 1 : std::min(strip.count - run_, most / whole);
    return strip;
  }

  /// Passes the elements that peek() has returned.
  void pass(const Strip& strip) {
    if (strips_ == nullptr) return blocks_.pass(strip);
    offset_ += strip.length;
    if (offset_ < strips_->length) return;
    offset_ = 0;
    run_ += strip.count;
    if (run_ < strips_->count) return;
    run_ = 0;
    ++strips_;
  }

 private:
  const Strip* strips_ = nullptr;      // the present one and those after it
  std::int64_t run_ = 0, offset_ = 0;  // in the present strip
  BlockCursor blocks_;                 // used if the strips are not kept
};

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// What a rank sends to one other rank, or receives from it, in one step of a redistribution.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "block_cursor.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange::detail {

/// The elements of one tensor in a stream.
struct StreamPart {
  std::size_t tensor = 0;                    ///< The position in the list of tensors.
  const TransferMessage* message = nullptr;  ///< The elements.
  DataType type = DataType::uint8;           ///< The type in the message.
  [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(size_of(type)); }
};

/// The parts of all tensors, one after the other. The stream is cut into messages of equal size,
/// except the last one, at the same places on both ranks.
struct MessageStream {
  RankInGroup peer{};                       ///< The other rank.
  TransferStep step = TransferStep::first;  ///< The step in which it moves.
  std::vector<StreamPart> parts{};          ///< In the order of the tensors.
};

/// Returns the bytes of all messages of a stream.
[[nodiscard]] inline std::int64_t bytes_of(const MessageStream& stream) {
  std::int64_t bytes = 0;
  for (const StreamPart& part : stream.parts) bytes += part.message->elements * part.width();
  return bytes;
}

/// Goes through a stream, message by message.
class StreamWalk {
 public:
  void begin(const MessageStream& stream) {
    parts_ = &stream.parts;
    part_ = 0;
    enter();
  }
  [[nodiscard]] bool is_at_end() const { return part_ == parts_->size(); }

  /// Returns the bytes of the next message, at most `most`.
  [[nodiscard]] std::int64_t next_bytes(std::int64_t most) const {
    std::int64_t bytes = 0, done = done_;
    for (std::size_t i = part_; i < parts_->size(); ++i, done = 0) {
      const StreamPart& part = (*parts_)[i];
      const std::int64_t left = part.message->elements - done;
      const std::int64_t n = std::min(left, (most - bytes) / part.width());
      bytes += n * part.width();
      if (n < left) break;
    }
    return bytes;
  }

  /// Goes through the next message, and calls use(part, strip) for its strips in order.
  template <class Use>
  void next(std::int64_t bytes, Use&& use) {
    while (bytes > 0) {
      const StreamPart& part = (*parts_)[part_];
      const std::int64_t elements = std::min(bytes / part.width(), part.message->elements - done_);
      for (std::int64_t left = elements; left > 0;) {
        const Strip strip = cursor_.peek(left);
        use(part, strip);
        cursor_.pass(strip);
        left -= strip.elements();
      }
      bytes -= elements * part.width();
      done_ += elements;
      if (done_ < part.message->elements) continue;
      ++part_;
      enter();
    }
  }

  /// Returns the part and the strip of the next message if it consists of a single strip.
  [[nodiscard]] std::optional<std::pair<const StreamPart*, Strip>> single_strip(
      std::int64_t bytes) const {
    const StreamPart& part = (*parts_)[part_];
    if (bytes > (part.message->elements - done_) * part.width()) return std::nullopt;
    const Strip strip = cursor_.peek(bytes / part.width());
    if (strip.elements() * part.width() != bytes) return std::nullopt;
    return std::pair{&part, strip};
  }

 private:
  void enter() {
    done_ = 0;
    if (!is_at_end()) cursor_.begin((*parts_)[part_].message->blocks);
  }

  const std::vector<StreamPart>* parts_ = nullptr;
  std::size_t part_ = 0;
  std::int64_t done_ = 0;  // elements of the part
  BlockCursor cursor_;
};

}  // namespace rankmesh::exchange::detail

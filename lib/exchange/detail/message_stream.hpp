// SPDX-License-Identifier: BSD-3-Clause
// What a rank sends to one other rank, or receives from it, in one step of a redistribution.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "strip_cursor.hpp"

namespace rankmesh::exchange::detail {

/// The elements that one tensor has in a stream. Tensors that move between the same places share
/// it.
class StreamKind {
 public:
  /// @param message  The elements. It must exist as long as this object.
  /// @param type  The type in the message.
  StreamKind(const TransferMessage& message, DataType type) : strips_{message}, message_{&message} {
    set_type(type);
  }
  /// Changes the type in the message.
  void set_type(DataType type) {
    type_ = type;
    width_ = static_cast<std::int64_t>(size_of(type));
    shift_ = std::countr_zero(size_of(type));
    bytes_ = message_->elements * width_;
  }
  [[nodiscard]] const TransferMessage& message() const { return *message_; }
  [[nodiscard]] const MessageStrips& strips() const { return strips_; }
  [[nodiscard]] DataType type() const { return type_; }
  /// Returns the size of an element in the message.
  [[nodiscard]] std::int64_t width() const { return width_; }
  /// Returns the size of all elements in the message.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Returns the number of elements that have this size.
  [[nodiscard]] std::int64_t elements_in(std::int64_t bytes) const { return bytes >> shift_; }

 private:
  MessageStrips strips_;
  const TransferMessage* message_;
  std::int64_t bytes_ = 0, width_ = 1;
  int shift_ = 0;  // the size of an element is a power of two
  DataType type_ = DataType::uint8;
};

/// The elements of one tensor in a stream. There may be tens of thousands of them.
struct StreamPart {
  std::uint32_t tensor = 0;  ///< The position in the list of tensors.
  std::uint32_t kind = 0;    ///< The position in MessageStream::kinds.
};

/// The parts of all tensors, one after the other. The stream is cut into messages of equal size,
/// except the last one, at the same places on both ranks.
struct MessageStream {
  using Kinds = std::vector<StreamKind>;
  RankInGroup peer{};                       ///< The other rank.
  TransferStep step = TransferStep::first;  ///< The step in which it moves.
  /// The elements that different tensors have. Streams may share them.
  std::shared_ptr<Kinds> kinds = std::make_shared<Kinds>();
  std::vector<StreamPart> parts{};  ///< In the order of the tensors.
  std::int64_t bytes = 0;           ///< Of all parts.

  /// Returns the elements of a part.
  [[nodiscard]] const StreamKind& kind_of(const StreamPart& part) const {
    return (*kinds)[part.kind];
  }
  /// Computes `bytes`.
  void count_bytes() {
    bytes = 0;
    for (const StreamPart& part : parts) bytes += kind_of(part).bytes();
  }
};

/// Goes through a stream, message by message.
class StreamWalk {
 public:
  /// The stream must exist as long as the walk is used.
  void begin(const MessageStream& stream) {
    stream_ = &stream;
    part_ = 0;
    enter();
  }
  [[nodiscard]] bool is_at_end() const { return part_ == stream_->parts.size(); }
  /// Returns the tensor of the next message, which must exist.
  [[nodiscard]] std::size_t next_tensor() const { return stream_->parts[part_].tensor; }

  /// Returns the bytes of the next message, at most `most`.
  [[nodiscard]] std::int64_t next_bytes(std::int64_t most) const {
    std::int64_t bytes = 0, done = done_;
    for (std::size_t i = part_; i < stream_->parts.size(); ++i, done = 0) {
      const StreamKind& kind = stream_->kind_of(stream_->parts[i]);
      const std::int64_t left = kind.bytes() - done;
      if (left > most - bytes) return bytes + kind.elements_in(most - bytes) * kind.width();
      bytes += left;
    }
    return bytes;
  }

  /// Returns the bytes of the next parts that fit into `most` as a whole. If there is none, returns
  /// a piece of the next part.
  [[nodiscard]] std::int64_t next_parts(std::int64_t most) const {
    std::int64_t bytes = 0, done = done_;
    for (std::size_t i = part_; i < stream_->parts.size(); ++i, done = 0) {
      const std::int64_t left = stream_->kind_of(stream_->parts[i]).bytes() - done;
      if (left > most - bytes) break;
      bytes += left;
    }
    return bytes > 0 ? bytes : next_bytes(most);
  }

  /// Goes through the next message, and calls use(tensor, kind, strip) for its strips in order.
  template <class Use>
  void next(std::int64_t bytes, Use&& use) {
    while (bytes > 0) {
      const StreamPart part = stream_->parts[part_];
      const StreamKind& kind = stream_->kind_of(part);
      const std::vector<Strip>& kept = kind.strips().kept();
      if (done_ == 0 && bytes >= kind.bytes() && !kept.empty()) {  // most parts of small tensors
        for (const Strip& strip : kept) use(std::size_t{part.tensor}, kind, strip);
        bytes -= kind.bytes();
        ++part_;
        enter();
        continue;
      }
      const std::int64_t of_part = std::min(bytes, kind.bytes() - done_);
      for (std::int64_t left = kind.elements_in(of_part); left > 0;) {
        const Strip strip = cursor_.peek(left);
        use(std::size_t{part.tensor}, kind, strip);
        cursor_.pass(strip);
        left -= strip.elements();
      }
      bytes -= of_part;
      done_ += of_part;
      if (done_ < kind.bytes()) continue;
      ++part_;
      enter();
    }
  }
  /// Goes through the next message without looking at it.
  void skip(std::int64_t bytes) {
    next(bytes, [](std::size_t, const StreamKind&, const Strip&) {});
  }

  /// Returns the tensor and the strip of the next message if it consists of a single strip.
  [[nodiscard]] std::optional<std::pair<std::size_t, Strip>> single_strip(
      std::int64_t bytes) const {
    const StreamPart part = stream_->parts[part_];
    const StreamKind& kind = stream_->kind_of(part);
    if (bytes > kind.bytes() - done_) return std::nullopt;
    const Strip strip = cursor_.peek(kind.elements_in(bytes));
    if (strip.elements() * kind.width() != bytes) return std::nullopt;
    return std::pair{std::size_t{part.tensor}, strip};
  }

 private:
  void enter() {
    done_ = 0;
    if (!is_at_end()) cursor_.begin(stream_->kind_of(stream_->parts[part_]).strips());
  }

  const MessageStream* stream_ = nullptr;
  std::size_t part_ = 0;
  std::int64_t done_ = 0;  // bytes of the part
  StripCursor cursor_;
};

}  // namespace rankmesh::exchange::detail

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
#include "transfer/detail/strided_runs.hpp"

namespace rankmesh::exchange::detail {

using rankmesh::detail::ArrayGaps;
using rankmesh::detail::ArrayView;
using rankmesh::detail::StridedRuns;
using rankmesh::detail::Strip;

/// The elements that one tensor has in a stream. Tensors that move between the same places share
/// it.
class StreamKind {
 public:
  /// @param message  The elements. It must exist as long as this object.
  /// @param type  The type in the message.
  StreamKind(const TransferMessage& message, DataType type)
      : runs_{message.blocks}, message_{&message} {
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
  [[nodiscard]] const StridedRuns& runs() const { return runs_; }
  [[nodiscard]] DataType type() const { return type_; }
  /// Returns the size of an element in the message.
  [[nodiscard]] std::int64_t width() const { return width_; }
  /// Returns the size of all elements in the message.
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  /// Returns the number of elements that have this size.
  [[nodiscard]] std::int64_t elements_in(std::int64_t bytes) const { return bytes >> shift_; }

 private:
  StridedRuns runs_;
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

/// A position in a stream, from which the messages of the stream follow one another.
class StreamPosition {
 public:
  /// Begins with the first element. The stream must exist as long as the position is used.
  void begin(const MessageStream& stream) {
    stream_ = &stream;
    part_ = 0;
    done_ = 0;
  }
  [[nodiscard]] bool is_at_end() const { return part_ == stream_->parts.size(); }

  /// Returns the bytes of the next message, at most `most`.
  /// @param are_whole  Stop in front of a part that does not fit, unless it is the first one.
  [[nodiscard]] std::int64_t next_bytes(std::int64_t most, bool are_whole = false) const {
    std::int64_t bytes = 0, done = done_;
    for (std::size_t i = part_; i < stream_->parts.size(); ++i, done = 0) {
      const StreamKind& kind = stream_->kind_of(stream_->parts[i]);
      const std::int64_t left = kind.bytes() - done;
      if (left > most - bytes)
        return are_whole && bytes > 0 ? bytes
                                      : bytes + kind.elements_in(most - bytes) * kind.width();
      bytes += left;
    }
    return bytes;
  }

  /// Goes through the next message, and calls use(tensor, kind, strip) for its strips in order.
  template <class Use>
  void next(std::int64_t bytes, Use&& use) {
    while (bytes > 0) {
      const StreamPart part = stream_->parts[part_];
      const StreamKind& kind = stream_->kind_of(part);
      const std::int64_t of_part = std::min(bytes, kind.bytes() - done_);
      kind.runs().for_each(kind.elements_in(done_), kind.elements_in(of_part),
                           [&](const Strip& strip) { use(std::size_t{part.tensor}, kind, strip); });
      bytes -= of_part;
      pass(kind, of_part);
    }
  }
  /// Goes through the next message without looking at it.
  void skip(std::int64_t bytes) {
    while (bytes > 0) {
      const StreamKind& kind = stream_->kind_of(stream_->parts[part_]);
      const std::int64_t of_part = std::min(bytes, kind.bytes() - done_);
      bytes -= of_part;
      pass(kind, of_part);
    }
  }

  /// Returns the tensor and the strip of the next message if it consists of a single strip.
  [[nodiscard]] std::optional<std::pair<std::size_t, Strip>> single_strip(
      std::int64_t bytes) const {
    const StreamPart part = stream_->parts[part_];
    const StreamKind& kind = stream_->kind_of(part);
    if (bytes > kind.bytes() - done_) return std::nullopt;
    Strip first;
    kind.runs().for_each(kind.elements_in(done_), kind.elements_in(bytes), [&](const Strip& strip) {
      first = strip;
      return false;
    });
    if (first.elements() * kind.width() != bytes) return std::nullopt;
    return std::pair{std::size_t{part.tensor}, first};
  }

 private:
  void pass(const StreamKind& kind, std::int64_t bytes) {
    done_ += bytes;
    if (done_ < kind.bytes()) return;
    ++part_;
    done_ = 0;
  }

  const MessageStream* stream_ = nullptr;
  std::size_t part_ = 0;
  std::int64_t done_ = 0;  // bytes of the part
};

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// Memory that is given back in the order in which it was taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace rankmesh::exchange::detail {

/// Memory for messages on the way. Each piece is contiguous.
class RingMemory {
 public:
  /// Allocates the memory, unless there is as much.
  void reserve(std::int64_t bytes) {
    if (bytes <= size_) return;
    memory_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    size_ = bytes;
  }
  /// Returns memory; null if there is not enough now. There is always enough for one piece of up to
  /// the reserved bytes.
  [[nodiscard]] std::byte* take(std::int64_t bytes) {
    if (pieces_ == 0) begin_ = end_ = 0;
    const bool is_wrapped = pieces_ > 0 && end_ <= begin_;
    if (end_ + bytes > (is_wrapped ? begin_ : size_)) {
      if (is_wrapped || bytes > begin_) return nullptr;
      end_ = 0;
    }
    std::byte* const piece = memory_.get() + end_;
    end_ += bytes;
    ++pieces_;
    return piece;
  }
  /// Gives the oldest piece back.
  void give_back(const std::byte* piece, std::int64_t bytes) {
    begin_ = piece - memory_.get() + bytes;
    --pieces_;
  }
  /// Forgets all pieces.
  void clear() { begin_ = end_ = pieces_ = 0; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::int64_t size_ = 0;
  std::int64_t begin_ = 0, end_ = 0;  // of the memory in use, which may continue at the beginning
  std::int64_t pieces_ = 0;
};

}  // namespace rankmesh::exchange::detail

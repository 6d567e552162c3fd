// SPDX-License-Identifier: BSD-3-Clause
// The protocol of a control queue in shared memory: one writer, and readers that each read
// every message.
//
// It uses neither MPI nor processes, and nothing in it waits. Therefore a test can run it between
// threads under ThreadSanitizer.
//
// A message is divided into chunks, which are numbered over the life of the ring. Chunk i is stored
// in slot i % slots.
// - The writer waits until every reader has read the old chunk of the slot. Then it writes the new
//   bytes and stores i + 1 as the slot's number (release).
// - A reader waits until the slot's number is i + 1 (acquire). Then it copies the bytes and stores
//   i + 1 in its own counter (release). The writer reads the counters (acquire), so it overwrites a
//   slot only after the copies.
// Memory begins as zeros, so no slot has a valid number at first. Each reader writes only its own
// counter, so readers do not contend with each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <vector>

namespace rankmesh::exchange::detail {

/// The alignment of slots and counters: two cache lines, because processors fetch them in pairs.
inline constexpr std::size_t ring_line = 128;

class MessageRing {
 public:
  /// A slot's number and the bytes of a short chunk.
  struct alignas(ring_line) Slot {
    std::atomic<std::uint64_t> number;
    std::uint64_t message_bytes;  // length of the whole message
    std::byte small[ring_line - 16];
  };
  struct alignas(ring_line) Counter {
    std::atomic<std::uint64_t> chunks;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Slot) == ring_line);

  /// @param memory  bytes() zeroed bytes at an address divisible by ring_line.
  MessageRing(std::byte* memory, std::size_t readers, std::size_t slots, std::size_t slot_bytes)
      : readers_{reinterpret_cast<Counter*>(memory), readers},
        slots_{reinterpret_cast<Slot*>(memory + readers * sizeof(Counter)), slots},
        bodies_{memory + readers * sizeof(Counter) + slots * sizeof(Slot)},
        slot_bytes_{std::max(slot_bytes, sizeof(Slot::small))} {}

  [[nodiscard]] static constexpr std::size_t bytes(std::size_t readers, std::size_t slots,
                                                   std::size_t slot_bytes) {
    return readers * sizeof(Counter) +
           slots * (sizeof(Slot) + std::max(slot_bytes, sizeof(Slot::small)));
  }
  [[nodiscard]] std::uint64_t chunks_of(std::size_t message_bytes) const {
    return message_bytes == 0 ? 1 : (message_bytes + slot_bytes_ - 1) / slot_bytes_;
  }

  // The writer's side.

  /// Returns whether chunk `i` may be written: every reader has read the old chunk of its slot.
  [[nodiscard]] bool may_write(std::uint64_t i) {
    if (i < all_read_ + slots_.size()) return true;
    all_read_ = least_read();
    return i < all_read_ + slots_.size();
  }
  /// Writes chunk `k` of a message as chunk `i` of the ring.
  void write(std::uint64_t i, std::span<const std::byte> message, std::uint64_t k) {
    Slot& slot = slots_[i % slots_.size()];
    const auto part =
        message.subspan(k * slot_bytes_, std::min(slot_bytes_, message.size() - k * slot_bytes_));
    slot.message_bytes = message.size();
    if (!part.empty()) std::memcpy(place(i, part.size()), part.data(), part.size());
    slot.number.store(i + 1, std::memory_order_release);
  }
  /// Returns the number of chunks that a reader has read.
  [[nodiscard]] std::uint64_t read_by(std::size_t reader) const {
    return readers_[reader].chunks.load(std::memory_order_acquire);
  }

  // A reader's side.

  /// Returns whether chunk `i` can be read.
  [[nodiscard]] bool is_written(std::uint64_t i) const {
    return slots_[i % slots_.size()].number.load(std::memory_order_acquire) == i + 1;
  }
  /// Returns the length of the message of chunk `i`, which must have been written.
  [[nodiscard]] std::uint64_t message_bytes(std::uint64_t i) const {
    return slots_[i % slots_.size()].message_bytes;
  }
  /// Copies chunk `i`, which is the k-th of its message, and marks it as read.
  void read(std::uint64_t i, std::span<std::byte> message, std::uint64_t k, std::size_t reader) {
    const auto part =
        message.subspan(k * slot_bytes_, std::min(slot_bytes_, message.size() - k * slot_bytes_));
    if (!part.empty()) std::memcpy(part.data(), place(i, part.size()), part.size());
    readers_[reader].chunks.store(i + 1, std::memory_order_release);
  }

 private:
  [[nodiscard]] std::uint64_t least_read() const {
    std::uint64_t least = UINT64_MAX;
    for (std::size_t r = 0; r < readers_.size(); ++r) least = std::min(least, read_by(r));
    return least;
  }
  // Short chunks are stored next to the number, in a cache line that the reader fetches anyway.
  [[nodiscard]] std::byte* place(std::uint64_t i, std::size_t size) const {
    Slot& slot = slots_[i % slots_.size()];
    return size <= sizeof slot.small ? slot.small : bodies_ + (i % slots_.size()) * slot_bytes_;
  }

  std::span<Counter> readers_;
  std::span<Slot> slots_;
  std::byte* bodies_;
  std::size_t slot_bytes_;
  std::uint64_t all_read_ = 0;  // by every reader, when the writer last looked
};

}  // namespace rankmesh::exchange::detail

// The protocol of a control queue in shared memory: one writer, many readers, all of whom read
// everything.
//
// It knows neither MPI nor processes: the members are processes with a segment or threads with an
// array, and nothing here waits. Messages are cut into chunks; chunk i lies in slot i % slots. The
// writer fills the slot and stores i + 1 as its number; a reader sees the number, copies, and
// stores i + 1 as what it has read. A slot is written again once every reader has read the chunk
// that it holds.
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

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t ring_line = 128;

class MessageRing {
 public:
  /// Of a message, beside its chunk's number.
  struct alignas(ring_line) Slot {
    std::atomic<std::uint64_t> number;
    std::uint64_t message_bytes;  // of the whole message
    std::byte small[ring_line - 16];
  };
  struct alignas(ring_line) Counter {
    std::atomic<std::uint64_t> chunks;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Slot) == ring_line);

  /// The memory begins as zeros, at an address divisible by ring_line.
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

  // The writer's side. Chunks are numbered over the life of the ring.

  /// Whether chunk `i` may be written: every reader has read what its slot holds.
  [[nodiscard]] bool may_write(std::uint64_t i) {
    if (i < all_read_ + slots_.size()) return true;
    all_read_ = least_read();
    return i < all_read_ + slots_.size();
  }
  /// Chunk `k` of the message as chunk `i` of the ring.
  void write(std::uint64_t i, std::span<const std::byte> message, std::uint64_t k) {
    Slot& slot = slots_[i % slots_.size()];
    const auto part =
        message.subspan(k * slot_bytes_, std::min(slot_bytes_, message.size() - k * slot_bytes_));
    slot.message_bytes = message.size();
    if (!part.empty()) std::memcpy(place(i, part.size()), part.data(), part.size());
    slot.number.store(i + 1, std::memory_order_release);
  }
  /// Chunks that this reader has read.
  [[nodiscard]] std::uint64_t read_by(std::size_t reader) const {
    return readers_[reader].chunks.load(std::memory_order_acquire);
  }

  // A reader's side.

  [[nodiscard]] bool is_written(std::uint64_t i) const {
    return slots_[i % slots_.size()].number.load(std::memory_order_acquire) == i + 1;
  }
  /// Of the message that chunk `i`, which is written, belongs to.
  [[nodiscard]] std::uint64_t message_bytes(std::uint64_t i) const {
    return slots_[i % slots_.size()].message_bytes;
  }
  /// Copies chunk `i`, the k-th of its message, into its place there, and counts it as read.
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
  // Small parts lie beside the number, in the line that is fetched anyway.
  [[nodiscard]] std::byte* place(std::uint64_t i, std::size_t size) const {
    Slot& slot = slots_[i % slots_.size()];
    return size <= sizeof slot.small ? slot.small : bodies_ + (i % slots_.size()) * slot_bytes_;
  }

  std::span<Counter> readers_;
  std::span<Slot> slots_;
  std::byte* bodies_;
  std::size_t slot_bytes_;
  std::uint64_t all_read_ = 0;  // by every reader, as far as the writer has looked
};

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// The memory through which one member sends messages to another one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "rankmesh/base/data_type.hpp"
#include "transport/shm/area.hpp"

namespace rankmesh::shm {

/// What a receiver must know of a message before it takes it.
struct Envelope {
  std::int64_t count;  ///< elements
  std::int32_t tag;
  DataType type;

  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(count) * size_of(type);
  }
  /// Returns whether the other one describes a message with the same elements.
  [[nodiscard]] bool agrees_with(const Envelope& other) const {
    return count == other.count && type == other.type;
  }
};

/// One message, or the announcement of a message that MPI carries. It is complete once `number`
/// holds the number of the message, counted from 1 over the life of the ring.
struct alignas(line) RingEntry {
  std::atomic<std::uint64_t> number;
  Envelope envelope;
  std::uint64_t offset;  ///< Where the payload lies in Ring::payloads(), if it is not here.
  std::byte payload[line - 2 * sizeof(std::uint64_t) - sizeof(Envelope)];
};
static_assert(sizeof(RingEntry) == line);

/// A view of the ring from one member to another. It begins as zeros. Only the sender writes
/// entries and payloads, and only the receiver writes taken().
class Ring {
 public:
  static constexpr std::uint64_t entries = 64;
  /// The ring carries messages of at most this number of bytes. It only announces larger messages.
  static constexpr std::size_t largest = 16 << 10;
  /// The bytes of all payloads that do not fit next to the number of their entry.
  static constexpr std::size_t payload_bytes = 64 << 10;
  static constexpr std::size_t inline_payload = sizeof(RingEntry::payload);

  Ring() = default;
  explicit Ring(std::byte* memory) : memory_{memory} {}

  [[nodiscard]] static constexpr std::size_t size() {
    return line + entries * sizeof(RingEntry) + payload_bytes;
  }
  [[nodiscard]] static constexpr bool carries(std::size_t bytes) { return bytes <= largest; }

  /// The number of the last entry that the receiver has taken.
  [[nodiscard]] std::atomic<std::uint64_t>& taken() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  [[nodiscard]] RingEntry& entry(std::uint64_t number) const {
    return *reinterpret_cast<RingEntry*>(memory_ + line + (number % entries) * sizeof(RingEntry));
  }
  [[nodiscard]] std::byte* payloads() const { return memory_ + line + entries * sizeof(RingEntry); }
  /// Returns where the payload of an entry lies.
  [[nodiscard]] std::byte* payload(RingEntry& entry, std::size_t bytes) const {
    return bytes <= inline_payload ? entry.payload : payloads() + entry.offset;
  }

 private:
  std::byte* memory_ = nullptr;
};

}  // namespace rankmesh::shm

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
struct alignas(line) Entry {
  std::atomic<std::uint64_t> number;
  Envelope envelope;
  std::byte payload[line - sizeof(std::uint64_t) - sizeof(Envelope)];
};
static_assert(sizeof(Entry) == line);

/// A view of the ring from one member to another. It begins as zeros. The sender alone writes
/// entries and places, and the receiver alone writes taken().
class Ring {
 public:
  static constexpr std::uint64_t entries = 64;
  /// Payloads that do not fit next to the number of their entry have places of their own.
  static constexpr std::uint64_t places = 16;
  static constexpr std::size_t place_bytes = 4096;
  static constexpr std::size_t inline_payload = sizeof(Entry::payload);

  Ring() = default;
  explicit Ring(std::byte* memory) : memory_{memory} {}

  [[nodiscard]] static constexpr std::size_t size() {
    return line + entries * sizeof(Entry) + places * place_bytes;
  }
  /// Returns whether the ring carries the elements of a message. It only announces larger ones.
  [[nodiscard]] static constexpr bool carries(std::size_t bytes) { return bytes <= place_bytes; }
  /// Returns how many entries later the memory of a message is used again.
  [[nodiscard]] static constexpr std::uint64_t ahead_of(std::size_t bytes) {
    return bytes > inline_payload && carries(bytes) ? places : entries;
  }

  /// The number of the last entry that the receiver has taken.
  [[nodiscard]] std::atomic<std::uint64_t>& taken() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  [[nodiscard]] Entry& entry(std::uint64_t number) const {
    return *reinterpret_cast<Entry*>(memory_ + line + (number % entries) * sizeof(Entry));
  }
  /// Returns where the payload of a message lies that the ring carries.
  [[nodiscard]] std::byte* payload(std::uint64_t number, std::size_t bytes) const {
    if (bytes <= inline_payload) return entry(number).payload;
    return memory_ + line + entries * sizeof(Entry) + (number % places) * place_bytes;
  }

 private:
  std::byte* memory_ = nullptr;
};

}  // namespace rankmesh::shm

// SPDX-License-Identifier: BSD-3-Clause
// The memory through which one member sends messages to another one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/area.hpp"

namespace rankmesh::shm {

/// What a receiver must know of a message before it takes it.
struct Envelope {
  std::int64_t count;  ///< elements
  std::int32_t tag;
  std::uint16_t type;  ///< a DataType
  /// 1 if the payload is the address of the elements in the memory of the sender. The receiver
  /// reads them there, and then says so in Ring::fetched().
  std::uint16_t is_offer;
};

/// A part of a message. The first part of a message has its envelope. The part is complete once
/// `number` holds the number of the part, counted from 1 over the life of the ring.
struct alignas(line) Part {
  std::atomic<std::uint64_t> number;
  Envelope envelope;
  std::byte payload[line - sizeof(std::uint64_t) - sizeof(Envelope)];
};
static_assert(sizeof(Part) == line);

/// A view of the ring from one member to another. It begins as zeros. The sender alone writes parts
/// and places, and the receiver alone writes taken().
class Ring {
 public:
  static constexpr std::uint64_t parts = 32;
  /// Payloads that do not fit next to the number of their part have places of their own.
  static constexpr std::uint64_t places = 16;
  static constexpr std::size_t place_bytes = 4096;
  static constexpr std::size_t inline_payload = sizeof(Part::payload);

  Ring() = default;
  explicit Ring(std::byte* memory) : memory_{memory} {}

  [[nodiscard]] static constexpr std::size_t size() {
    return first_part + parts * sizeof(Part) + places * place_bytes;
  }
  /// Returns the bytes that a part carries if so many bytes of its message are left.
  [[nodiscard]] static constexpr std::size_t payload_bytes(std::size_t left) {
    return left < place_bytes ? left : place_bytes;
  }
  /// Returns how many parts later the memory of a part with so many bytes is used again.
  [[nodiscard]] static constexpr std::uint64_t ahead_of(std::size_t bytes) {
    return bytes <= inline_payload ? parts : places;
  }

  /// The number of the last part that the receiver has taken.
  [[nodiscard]] std::atomic<std::uint64_t>& taken() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  /// The number of the last offer among those whose numbers have the same remainder, that the
  /// receiver does not need any longer.
  [[nodiscard]] std::atomic<std::uint64_t>& fetched(std::uint64_t number) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(memory_ + line)[number % parts];
  }
  [[nodiscard]] Part& part(std::uint64_t number) const {
    return *reinterpret_cast<Part*>(memory_ + first_part + (number % parts) * sizeof(Part));
  }
  /// Returns where the payload of a part lies.
  [[nodiscard]] std::byte* payload(std::uint64_t number, std::size_t bytes) const {
    if (bytes <= inline_payload) return part(number).payload;
    return memory_ + first_part + parts * sizeof(Part) + (number % places) * place_bytes;
  }

 private:
  static constexpr std::size_t first_part = line + parts * sizeof(std::uint64_t);
  std::byte* memory_ = nullptr;
};

}  // namespace rankmesh::shm

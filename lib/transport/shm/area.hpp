// SPDX-License-Identifier: BSD-3-Clause
// The layout of the memory that one member of a group shares with the others: counters, small
// payloads next to them, and slots for larger payloads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rankmesh::shm {

/// Two cache lines, because processors prefetch lines in pairs.
inline constexpr std::size_t line = 128;
/// The largest payload that shares a line with the number of its step. One transfer between two
/// cores then brings both.
inline constexpr std::size_t inline_bytes = line - sizeof(std::uint64_t);
/// The largest medium payload. Medium payloads have places of their own, more than large payloads
/// have, so that the root of many small broadcasts can run far ahead of the other members.
inline constexpr std::size_t medium_bytes = 4096;
/// The number of places for inline, medium and large payloads. It is also the number of steps that
/// a member can be ahead of the slowest one, see ahead_of().
inline constexpr std::uint64_t headers = 32;
inline constexpr std::uint64_t media = 16;
inline constexpr std::uint64_t slots = 4;
/// Returns how many steps later the place of a payload of `bytes` bytes is used again.
constexpr std::uint64_t ahead_of(std::size_t bytes) {
  return bytes <= inline_bytes ? headers : bytes <= medium_bytes ? media : slots;
}

/// The header of a step. The payload of the step is complete once `step` holds the step's number.
struct alignas(line) Header {
  std::atomic<std::uint64_t> step;
  std::byte payload[inline_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Header) == line,
              "the members are processes, so their counters must not need a lock");

/// A view of the memory of one member, which begins as zeros. The members of a group map the same
/// bytes at different addresses, or they are threads of one process.
class Area {
 public:
  explicit Area(std::byte* memory) : memory_{memory} {}

  /// Returns the bytes that one member needs. @param slot_bytes  bytes per slot, a multiple of
  /// `line`.
  [[nodiscard]] static constexpr std::size_t size(std::size_t slot_bytes) {
    return first_slot + slots * slot_bytes;
  }
  /// Returns where in an area the payload of a step lies.
  [[nodiscard]] static constexpr std::size_t payload_offset(std::uint64_t step, std::size_t bytes,
                                                            std::size_t slot_bytes) {
    if (bytes <= inline_bytes) return header_offset(step) + sizeof(std::uint64_t);
    if (bytes <= medium_bytes) return first_medium + (step % media) * medium_bytes;
    return first_slot + (step % slots) * slot_bytes;
  }

  /// The number of the last step that this member has finished: it has read everything that it
  /// needs of that step and of the steps before.
  [[nodiscard]] std::atomic<std::uint64_t>& done() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  [[nodiscard]] Header& header(std::uint64_t step) const {
    return *reinterpret_cast<Header*>(memory_ + header_offset(step));
  }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return memory_ + offset; }

 private:
  static constexpr std::size_t header_offset(std::uint64_t step) {
    return line + (step % headers) * sizeof(Header);
  }
  static constexpr std::size_t first_medium = line + headers * sizeof(Header);
  static constexpr std::size_t first_slot = first_medium + media * medium_bytes;

  std::byte* memory_;
};
static_assert(offsetof(Header, payload) == sizeof(std::uint64_t));

}  // namespace rankmesh::shm

// What one member of a group has in shared memory: counters, small payloads and slots for larger
// ones.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rankmesh::shm {

/// Two cache lines: processors fetch them in pairs.
inline constexpr std::size_t line = 128;
/// Bytes that travel beside the number of their step.
inline constexpr std::size_t inline_bytes = line - sizeof(std::uint64_t);
/// Payloads up to here have places of their own, more than large ones have: who broadcasts small
/// messages can be far ahead.
inline constexpr std::size_t medium_bytes = 4096;
/// How far a member may be ahead of the slowest: in steps, in steps of more than inline_bytes, and
/// of more than medium_bytes.
inline constexpr std::uint64_t headers = 32;
inline constexpr std::uint64_t media = 16;
inline constexpr std::uint64_t slots = 4;
constexpr std::uint64_t ahead_of(std::size_t bytes) {
  return bytes <= inline_bytes ? headers : bytes <= medium_bytes ? media : slots;
}

/// Of one step: its payload is there once `step` has its number.
struct alignas(line) Header {
  std::atomic<std::uint64_t> step;
  std::byte payload[inline_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(Header) == line);

/// A view of one member's memory, which begins as zeros. All ranks of a group see the same bytes,
/// at addresses of their own, or are threads of one process.
class Area {
 public:
  Area(std::byte* memory, std::size_t slot_bytes) : memory_{memory}, slot_bytes_{slot_bytes} {}

  /// Bytes that a member needs, for slots of so many bytes (a multiple of `line`).
  [[nodiscard]] static constexpr std::size_t size(std::size_t slot_bytes) {
    return first_slot + slots * slot_bytes;
  }
  /// Number of the last step that this member is through with: it has read what it needs of it.
  [[nodiscard]] std::atomic<std::uint64_t>& done() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  [[nodiscard]] Header& header(std::uint64_t step) const {
    return *reinterpret_cast<Header*>(memory_ + line + (step % headers) * sizeof(Header));
  }
  /// Where this many bytes of a step lie.
  [[nodiscard]] std::byte* payload(std::uint64_t step, std::size_t bytes) const {
    if (bytes <= inline_bytes) return header(step).payload;
    if (bytes <= medium_bytes) return memory_ + first_medium + (step % media) * medium_bytes;
    return memory_ + first_slot + (step % slots) * slot_bytes_;
  }

 private:
  static constexpr std::size_t first_medium = line + headers * sizeof(Header);
  static constexpr std::size_t first_slot = first_medium + media * medium_bytes;

  std::byte* memory_;
  std::size_t slot_bytes_;
};

}  // namespace rankmesh::shm

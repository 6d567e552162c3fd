// SPDX-License-Identifier: BSD-3-Clause
// The layout of the memory that one member of a group shares with the others: counters, small
// payloads next to them, and slots for larger payloads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::shm {

/// Two cache lines, because processors prefetch lines in pairs.
inline constexpr std::size_t line = 128;
/// The largest payload that shares a line with the number of its step and the descriptor of its
/// call. One transfer between two cores then brings all three.
inline constexpr std::size_t inline_bytes = line - sizeof(std::uint64_t) - sizeof(CallDescriptor);
/// The largest medium payload. Medium payloads have slots of their own. There are more of these
/// than slots for large payloads, so that the root of many small broadcasts can run far ahead of
/// the other members.
inline constexpr std::size_t medium_bytes = 4096;
/// The numbers of slots for inline, medium and large payloads. They are also the numbers of steps
/// by which a member can be ahead of the slowest member, see ahead_of().
inline constexpr std::uint64_t headers = 32;
inline constexpr std::uint64_t media = 16;
inline constexpr std::uint64_t slots = 4;
/// Returns after how many steps the slot of a payload of `bytes` bytes is reused.
constexpr std::uint64_t ahead_of(std::size_t bytes) {
  return bytes <= inline_bytes ? headers : bytes <= medium_bytes ? media : slots;
}

/// The header of a step. The descriptor of the call and the payload of the step are complete once
/// `step` holds the step's number.
struct alignas(line) StepHeader {
  std::atomic<std::uint64_t> step;
  CallDescriptor call;
  std::byte payload[inline_bytes];
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && sizeof(StepHeader) == line,
              "the members are processes, so their counters must not need a lock");

/// The reason why a group has ended early, in the words of the rank that found it. It is stored in
/// the area of the group's first member. The first rank that finds a reason writes it, and every
/// call and every wait of the group reads the state.
///
/// The word with the state also has the last step in which all members have met. So one
/// compare-exchange decides whether the members go on into MPI or one of them has given up before.
struct alignas(line) Finding {
  enum State : std::uint64_t {
    none,
    being_written,
    mismatch = 4,  ///< The members make different calls. The states that follow have this bit, too.
    timed_out,     ///< A member gave up an operation because its deadline passed.
    ended,         ///< A member found out that another one has ended or has left the mesh.
    gave_up,       ///< A member gave up an operation for another reason, or it left the mesh.
  };
  static constexpr std::size_t most_missing = 13;

  std::atomic<std::uint64_t> word;  ///< The step, times `states`, plus the state.
  std::uint64_t missing_count;
  std::uint64_t limit;                 ///< The TimeLimit that has passed, after a time-out.
  std::int64_t missing[most_missing];  ///< ranks in the mesh, after a time-out
  char text[15 * line];

  [[nodiscard]] State state() const {
    return static_cast<State>(word.load(std::memory_order_acquire) % states);
  }
  [[nodiscard]] bool is_halted() const {
    return (word.load(std::memory_order_relaxed) & mismatch) != 0;
  }
  /// Returns whether all members have met in a step.
  [[nodiscard]] bool has_met(std::uint64_t step) const {
    return word.load(std::memory_order_acquire) / states >= step;
  }
  /// Says that all members have met in a step. Returns false if one of them has given up before.
  bool meet(std::uint64_t step) {
    std::uint64_t now = word.load(std::memory_order_acquire);
    while (now % states == none && now / states < step)
      if (word.compare_exchange_weak(now, step * states, std::memory_order_acq_rel)) return true;
    return now / states >= step;
  }
  /// Lets the caller write a reason. Returns false if another member has begun to, or if all have
  /// met in the step in which the caller waits.
  /// @param step  no_step if the caller is in no meeting.
  bool begin(std::uint64_t step) {
    std::uint64_t now = word.load(std::memory_order_acquire);
    while (now % states == none && now / states < step)
      if (word.compare_exchange_weak(now, now + being_written, std::memory_order_acq_rel))
        return true;
    return false;
  }
  /// Shows the reason to the other members.
  void end(State state) { word.fetch_add(state - being_written, std::memory_order_release); }

  static constexpr std::uint64_t states = 8;
  static constexpr std::uint64_t no_step = ~std::uint64_t{0};
};
static_assert(sizeof(Finding) == 16 * line);

/// Whether a member will make further calls.
struct alignas(line) AreaPresence {
  /// 0 while the group is open on this member. Otherwise 1 + the number of calls that it has made.
  std::atomic<std::uint64_t> closed_after;
  std::uint64_t brought;  ///< See CallGuard::bring(). Written before `closed_after`.
  /// The reason, if the member has left without closing the group; empty otherwise.
  char why[8 * line - 2 * sizeof(std::uint64_t)];
};

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
    if (bytes <= inline_bytes) return header_offset(step) + offsetof(StepHeader, payload);
    if (bytes <= medium_bytes) return first_medium + (step % media) * medium_bytes;
    return first_slot + (step % slots) * slot_bytes;
  }

  /// The number of the last step that this member has finished. The member has read everything that
  /// it needs of this step and of all earlier steps.
  [[nodiscard]] std::atomic<std::uint64_t>& done() const {
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(memory_);
  }
  [[nodiscard]] AreaPresence& presence() const {
    return *reinterpret_cast<AreaPresence*>(memory_ + line);
  }
  [[nodiscard]] Finding& finding() const {
    return *reinterpret_cast<Finding*>(memory_ + line + sizeof(AreaPresence));
  }
  [[nodiscard]] StepHeader& header(std::uint64_t step) const {
    return *reinterpret_cast<StepHeader*>(memory_ + header_offset(step));
  }
  [[nodiscard]] std::byte* at(std::size_t offset) const { return memory_ + offset; }

 private:
  static constexpr std::size_t header_offset(std::uint64_t step) {
    return first_header + (step % headers) * sizeof(StepHeader);
  }
  static constexpr std::size_t first_header = line + sizeof(AreaPresence) + sizeof(Finding);
  static constexpr std::size_t first_medium = first_header + headers * sizeof(StepHeader);
  static constexpr std::size_t first_slot = first_medium + media * medium_bytes;

  std::byte* memory_;
};
static_assert(offsetof(StepHeader, payload) + inline_bytes == line);

}  // namespace rankmesh::shm

// SPDX-License-Identifier: BSD-3-Clause
// Writes calls into the record of this rank.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <utility>

#include "rankmesh/base/call_descriptor.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/record/format.hpp"
#include "rankmesh/record/record.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace rankmesh::detail {

/// Returns the time in nanoseconds. All processes of a node have the same clock, except where a
/// time namespace shifts it.
inline std::int64_t monotonic_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// Returns the value of the counter of a record. If the frequency of the processor's counter is
/// constant, this is the processor's counter, which is read in a few nanoseconds. Otherwise it is
/// the monotonic clock.
inline std::uint64_t read_counter(const record::format::Header& header) {
#if defined(__x86_64__)
  if (header.counter_is_clock == 0) return __rdtsc();
#elif defined(__aarch64__)
  if (header.counter_is_clock == 0) {
    std::uint64_t counter;
    asm volatile("mrs %0, cntvct_el0" : "=r"(counter));
    return counter;
  }
#endif
  (void)header;
  return static_cast<std::uint64_t>(monotonic_nanoseconds());
}

/// What the counter of a record and the monotonic clock show at one moment.
struct CounterAndClock {
  std::uint64_t counter = 0;
  std::int64_t nanoseconds = 0;
};
/// Reads both a few times, and returns those that were read in the least time: an interrupt or a
/// cache miss between two readings would shift all times of the record by microseconds, and the
/// order of calls of different ranks with them. Takes about 0.2 us.
inline CounterAndClock read_counter_and_clock(const record::format::Header& header) {
  if (header.counter_is_clock != 0) {
    const std::int64_t now = monotonic_nanoseconds();
    return {.counter = static_cast<std::uint64_t>(now), .nanoseconds = now};
  }
  CounterAndClock best;
  std::uint64_t least = ~std::uint64_t{0};
  for (int reading = 0; reading < 4; ++reading) {
    const std::uint64_t before = read_counter(header);
    const std::int64_t nanoseconds = monotonic_nanoseconds();
    const std::uint64_t counts = read_counter(header) - before;
    if (counts >= least) continue;
    least = counts;
    best = {.counter = before + counts / 2, .nanoseconds = nanoseconds};
  }
  return best;
}

/// The record to which the calls of one group are written. Each transport has one.
struct Recording {
  record::format::Header* record = nullptr;  ///< Null if nothing is recorded.
  std::uint64_t group = 0;                   ///< The bits of Entry::call that name the group.
  std::shared_ptr<void> owner{};             ///< Keeps the record.
};

/// Returns what Header::next becomes with the next entry.
[[gnu::always_inline]] inline std::uint64_t next_of(const record::format::Header& header) {
  return header.next.load(std::memory_order_relaxed) + record::format::position_unit;
}
/// Returns whether the times of the entry with this value are to be taken.
[[gnu::always_inline]] inline bool is_sampled(const record::format::Header& header,
                                              std::uint64_t next) {
  return (next & header.time_mask) == 0;
}

/// Adds an entry to the ring of a record, for a call that is issued. Uses plain stores to cache
/// lines that only this process writes.
/// @param next  The result of next_of().
/// @param call  Entry::call.
[[gnu::always_inline]] inline record::format::Entry& add_entry(record::format::Header& header,
                                                               std::uint64_t next,
                                                               const CallDescriptor& descriptor,
                                                               std::uint64_t call) {
  namespace format = record::format;
  // With these values, a mask gives the slot, and the sequence needs no arithmetic.
  static_assert(format::position_unit == sizeof(format::Entry) &&
                format::first_next == static_cast<std::uint64_t>(record::State::issued));
  constexpr std::uint64_t slots = (format::entry_count - 1) * sizeof(format::Entry);
  header.next.store(next, std::memory_order_relaxed);
  auto* const entries = reinterpret_cast<std::byte*>(&header) + format::header_bytes;
  auto& entry = *reinterpret_cast<format::Entry*>(entries + (next & slots));
  // Release: a reader that sees a part of the new entry also sees `next`. Therefore it knows that
  // the old entry has been overwritten.
  entry.kind.store(descriptor.kind, std::memory_order_release);
  entry.detail.store(descriptor.detail, std::memory_order_release);
  entry.count.store(static_cast<std::uint64_t>(descriptor.count), std::memory_order_release);
  entry.call.store(call, std::memory_order_release);
  entry.sequence.store(next, std::memory_order_release);
  return entry;
}

/// Notes that a call without times has ended. The entry must be in the state `issued`.
[[gnu::always_inline]] inline void end_entry(record::format::Entry& entry) {
  constexpr auto step = static_cast<std::uint64_t>(record::State::ended) -
                        static_cast<std::uint64_t>(record::State::issued);
  // Only this thread writes the word, so the addition need not be atomic.
  entry.sequence.store(entry.sequence.load(std::memory_order_relaxed) + step,
                       std::memory_order_relaxed);
}

[[nodiscard]] inline bool has_time(const record::format::Entry& entry) {
  return (entry.call.load(std::memory_order_relaxed) & record::format::timed_bit) != 0;
}

/// Notes that the call of an entry has reached a state. The entry must still belong to the call.
inline void set_state(record::format::Header& header, record::format::Entry& entry,
                      record::State state) {
  if (state >= record::State::ended && has_time(entry))
    entry.end.store(read_counter(header), std::memory_order_relaxed);
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store((sequence & ~record::format::state_mask) | static_cast<std::uint64_t>(state),
                       std::memory_order_release);
}

/// Notes where the program has made the call of an entry.
RANKMESH_API void note_call_site(const record::format::Header& header,
                                 record::format::Entry& entry);

/// Notes when the call of an entry has begun to wait, unless a time was taken before. If the places
/// of calls are noted, a time is taken for every call, so this function notes its place, too.
inline void take_time(record::format::Header& header, record::format::Entry& entry) {
  if (has_time(entry)) return;
  if (header.call_sites != 0) note_call_site(header, entry);
  entry.begin.store(read_counter(header), std::memory_order_relaxed);
  entry.call.fetch_or(record::format::timed_bit, std::memory_order_release);
}

/// Records a call with its times, from the construction of this object until end(). If the object
/// is destroyed before end(), the call is recorded as failed. Move-only.
class RecordedCall {
 public:
  RecordedCall() = default;
  /// @param number  The number of a collective in its group; 0 for messages.
  /// @param bits    record::format::async_bit or captured_bit, or 0.
  RecordedCall(const Recording& recording, const CallDescriptor& descriptor, std::uint64_t number,
               record::Carrier carrier, record::State state, std::uint64_t bits = 0)
      : header_{recording.record} {
    if (header_ == nullptr) return;
    const std::uint64_t call =
        recording.group | (number & record::format::number_mask) |
        static_cast<std::uint64_t>(carrier) << record::format::carrier_shift | bits;
    entry_ = &add_entry(*header_, next_of(*header_), descriptor, call);
    take_time(*header_, *entry_);
    if (state != record::State::issued) set_state(*header_, *entry_, state);
    position_ = entry_->sequence.load(std::memory_order_relaxed) / record::format::position_unit;
  }
  RecordedCall(RecordedCall&& other) noexcept
      : header_{std::exchange(other.header_, nullptr)},
        entry_{other.entry_},
        position_{other.position_} {}
  RecordedCall& operator=(RecordedCall&& other) noexcept {
    if (this != &other) {
      set(record::State::failed);
      header_ = std::exchange(other.header_, nullptr);
      entry_ = other.entry_;
      position_ = other.position_;
    }
    return *this;
  }
  RecordedCall(const RecordedCall&) = delete;
  RecordedCall& operator=(const RecordedCall&) = delete;
  ~RecordedCall() { set(record::State::failed); }

  /// The call enters a function of MPI or NCCL.
  void enter() { set(record::State::inside); }
  void end() {
    set(record::State::ended);
    header_ = nullptr;
  }
  /// The receive has ended without a message.
  void cancel() {
    if (is_own()) entry_->call.fetch_or(record::format::cancelled_bit);
    end();
  }
  /// The call has become part of a CUDA graph, so its end will not be known.
  void capture() {
    if (is_own()) entry_->call.fetch_or(record::format::captured_bit);
    end();
  }

 private:
  // After a few thousand further calls, the entry belongs to another call.
  [[nodiscard]] bool is_own() const {
    return header_ != nullptr &&
           entry_->sequence.load(std::memory_order_relaxed) / record::format::position_unit ==
               position_;
  }
  void set(record::State state) {
    if (is_own()) set_state(*header_, *entry_, state);
  }

  record::format::Header* header_ = nullptr;
  record::format::Entry* entry_ = nullptr;
  std::uint64_t position_ = 0;
};

}  // namespace rankmesh::detail

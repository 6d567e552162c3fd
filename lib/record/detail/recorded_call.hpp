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

/// Returns the counter of a record: that of the processor if its frequency is constant, because it
/// is read in a few nanoseconds; otherwise the monotonic clock.
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

/// The record that the calls of one group go to. A transport has one.
struct Recording {
  record::format::Header* record = nullptr;  ///< Null if nothing is recorded.
  std::uint64_t group = 0;                   ///< The bits of Entry::call that name the group.
  std::shared_ptr<void> owner{};             ///< Keeps the record.
};

/// Adds an entry to the ring of a record. Plain stores to lines that only this process writes.
/// @param call  Entry::call.
[[gnu::always_inline]] inline record::format::Entry& add_entry(record::format::Header& header,
                                                               const CallDescriptor& descriptor,
                                                               std::uint64_t call,
                                                               record::State state) {
  using record::format::Entry;
  const std::uint64_t next = header.next.load(std::memory_order_relaxed) + 256;
  header.next.store(next, std::memory_order_relaxed);
  constexpr std::uint64_t slots = (record::format::entry_count - 1) * sizeof(Entry);
  auto* const entries = reinterpret_cast<std::byte*>(&header) + record::format::header_bytes;
  Entry& entry = *reinterpret_cast<Entry*>(entries + (next / 256 * sizeof(Entry) & slots));
  // Release: a reader that sees a part of the new entry also sees `next`, and so knows that the old
  // entry is gone.
  entry.kind.store(descriptor.kind, std::memory_order_release);
  entry.detail.store(descriptor.detail, std::memory_order_release);
  entry.count.store(static_cast<std::uint64_t>(descriptor.count), std::memory_order_release);
  entry.call.store(call, std::memory_order_release);
  std::uint64_t begin = 0;
  if ((next & header.time_mask) == 0) [[unlikely]]
    begin = read_counter(header);
  entry.begin.store(begin, std::memory_order_release);
  entry.sequence.store(next | static_cast<std::uint64_t>(state), std::memory_order_release);
  return entry;
}

/// Notes that the call of an entry has come to a state. The entry must still be that of the call.
[[gnu::always_inline]] inline void set_state(record::format::Header& header,
                                             record::format::Entry& entry, record::State state) {
  if (state >= record::State::ended && entry.begin.load(std::memory_order_relaxed) != 0)
      [[unlikely]]
    entry.end.store(read_counter(header), std::memory_order_relaxed);
  const std::uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store((sequence & ~std::uint64_t{0xff}) | static_cast<std::uint64_t>(state),
                       std::memory_order_release);
}

/// Notes when the call of an entry has begun to wait, unless a time was taken before.
inline void take_time(record::format::Header& header, record::format::Entry& entry) {
  if (entry.begin.load(std::memory_order_relaxed) == 0)
    entry.begin.store(read_counter(header), std::memory_order_relaxed);
}

/// A call that is recorded from now on, with its times, until end(). A call that is not ended when
/// this object is destroyed has failed. Move-only.
class RecordedCall {
 public:
  RecordedCall() = default;
  /// @param number  Of a collective in its group; 0 for messages.
  /// @param bits    record::format::async_bit or captured_bit, or 0.
  RecordedCall(const Recording& recording, const CallDescriptor& descriptor, std::uint64_t number,
               record::Carrier carrier, record::State state, std::uint64_t bits = 0)
      : header_{recording.record} {
    if (header_ == nullptr) return;
    const std::uint64_t call =
        recording.group | (number & record::format::number_mask) |
        static_cast<std::uint64_t>(carrier) << record::format::carrier_shift | bits;
    entry_ = &add_entry(*header_, descriptor, call, state);
    take_time(*header_, *entry_);
    position_ = entry_->sequence.load(std::memory_order_relaxed) >> 8;
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
  /// The call has become part of a CUDA graph, so its end will not be known.
  void capture() {
    if (header_ != nullptr) entry_->call.fetch_or(record::format::captured_bit);
    end();
  }

 private:
  // After a few thousand calls more, the entry is that of another call.
  void set(record::State state) {
    if (header_ != nullptr && entry_->sequence.load(std::memory_order_relaxed) >> 8 == position_)
      set_state(*header_, *entry_, state);
  }

  record::format::Header* header_ = nullptr;
  record::format::Entry* entry_ = nullptr;
  std::uint64_t position_ = 0;
};

}  // namespace rankmesh::detail

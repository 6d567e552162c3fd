// SPDX-License-Identifier: BSD-3-Clause
// The fast path of algorithms that take one step. It does what Engine::begin() and advance() would
// do, but the algorithm is a constant of the compilation: its functions are inlined, and nothing is
// written to a queue. For 8 bytes this halves the instructions. Only the source file of such an
// algorithm includes this.
#pragma once

#include "base/detail/pause.hpp"
#include "transport/shm/engine.hpp"

namespace rankmesh::shm {

/// Returns the blocks of a v-form, which has an algorithm of its own; null for other calls.
template <const Algorithm& algorithm>
const Blocks* blocks_of(const Call& call) {
  if (algorithm.first.agrees != nullptr) return nullptr;  // a meeting compares the counts itself
  if (!has_v_form(algorithm.operation)) return nullptr;
  return gathers(algorithm.operation) ? call.out_blocks : call.in_blocks;
}

/// An Algorithm's `run_small`, see algorithms.hpp.
template <const Algorithm& algorithm>
[[gnu::flatten]] Outcome run_in_one_step(Engine& engine, Progress& p, const Call& call, int looks) {
  const Group& group = engine.group_;
  if (engine.reading_ != nullptr || engine.is_halted()) return Outcome::not_begun;
  if (algorithm.applies != nullptr && !algorithm.applies(group, call)) return Outcome::not_begun;
  const auto [count, unit] = algorithm.payload(group, call);
  const std::size_t bytes = static_cast<std::size_t>(count) * unit;
  const std::uint64_t number = engine.next_step_;
  if (bytes > group.slot_bytes || !engine.may_overwrite(number, bytes)) return Outcome::not_begun;
  // All members must choose the same algorithm, whether they take this path or not. Algorithms for
  // symmetric memory and for v-forms come first.
  // One check for three pointers, which are nearly always null, and for a mark, which the
  // descriptors below do not have.
  const auto bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
  const std::uintptr_t mark =
      algorithm.first.agrees == nullptr ? static_cast<std::uintptr_t>(call.bucket) : 0;
  if ((bits(call.in.window) | bits(call.out.window) | bits(blocks_of<algorithm>(call)) | mark) !=
          0 &&
      (mark != 0 || !engine.is_chosen(algorithm, call)))
    return Outcome::not_begun;
  // The caller of a meeting records the call itself.
  record::format::Header* const record =
      algorithm.first.agrees == nullptr ? engine.record_ : nullptr;
  std::uint64_t next_entry = 0;
  if (record != nullptr) {
    next_entry = detail::next_of(*record);
    if (detail::is_sampled(*record, next_entry)) [[unlikely]]
      return Outcome::not_begun;  // the general path takes the times
  }
  if (engine.uncompared_ != 0) [[unlikely]] {
    engine.look_back();
    if (engine.difference_ != 0) return Outcome::not_begun;
  }
  const CallDescriptor descriptor =
      algorithm.first.agrees != nullptr
          ? descriptor_of(call, algorithm)  // a meeting can precede every operation
          : descriptor_of_plain(call, algorithm.operation);
  const std::uint64_t call_number = ++engine.calls_;
  record::format::Entry* entry = nullptr;
  if (record != nullptr)
    entry =
        &detail::add_entry(*record, next_entry, descriptor, engine.recorded_group_ | call_number);
  engine.next_step_ = number + 1;
  const Phase& phase = algorithm.first;
  const Step step{call,  number, 0,
                  count, bytes,  Area::payload_offset(number, bytes, group.slot_bytes)};
  engine.publish(phase, step, descriptor, call_number);
  std::size_t seen = 0;
  // From here on it is as if begin() and advance() had run.
  const auto continue_later = [&] {
    p = Progress{.call = &call,
                 .algorithm = &algorithm,
                 .descriptor = descriptor,
                 .call_number = call_number,
                 .entry = entry,
                 .payload = {count, unit},
                 .lead = count,
                 .piece = count,
                 .first = number,
                 .steps = 1,
                 .published = 1,
                 .read = 0,
                 .seen = seen,
                 .next = nullptr,
                 .waits_for = nullptr};
    engine.enqueue(p);
    return Outcome::begun;
  };
  while (!engine.others_have_published(phase, step, descriptor, seen)) {
    if (--looks < 0 || engine.difference_ != 0) return continue_later();
    detail::pause();
  }
  if (phase.agrees != nullptr) {  // this is a meeting
    if (!phase.agrees(group, step)) engine.difference_ = number;
    if (engine.difference_ != 0 || !engine.finding_->meet(number)) return continue_later();
  }
  engine.finish(phase, step);
  if (entry != nullptr) detail::end_entry(*entry);
  return Outcome::complete;
}

}  // namespace rankmesh::shm

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/shm/engine.hpp"

#include <algorithm>
#include <utility>

#include "transport/detail/reduce_kernels.hpp"
#include "transport/shm/algorithms.hpp"
#include "transport/shm/meeting.hpp"

namespace rankmesh::shm {
namespace {

// The phase of step i. If there are two phases, the two steps of a piece follow each other.
const Phase& phase_of(const Algorithm& algorithm, std::uint64_t i) {
  return algorithm.second && i % 2 == 1 ? *algorithm.second : algorithm.first;
}

}  // namespace

Engine::Engine(const std::vector<std::byte*>& areas, std::vector<std::int32_t> locals, int self,
               std::size_t slot_bytes, Limits limits, const void* group,
               const detail::Recording& recording, MemoryReader* reader)
    : group_{.id = group,
             .areas = {},
             .locals = std::move(locals),
             .self = static_cast<std::size_t>(self),
             .size = areas.size(),
             .slot_bytes = slot_bytes,
             .limits = limits,
             .sources = std::make_unique<const std::byte*[]>(areas.size()),
             .direct = reader == nullptr ? nullptr
                                         : std::make_unique<DirectReads>(*reader, areas.size())},
      record_{recording.record},
      recorded_group_{recording.group | static_cast<std::uint64_t>(record::Carrier::shared_memory)
                                            << record::format::carrier_shift} {
  for (std::byte* memory : areas) group_.areas.emplace_back(memory);
  finding_ = &group_.areas.front().finding();
  // A flat all_reduce must fit into a slot, and an empty one takes no steps in any memory.
  group_.limits.flat_bytes = std::min(limits.flat_bytes, static_cast<std::int64_t>(slot_bytes));
  // Payloads that fit into a slot take the fast path, which has no direct reads.
  group_.limits.direct_bytes =
      std::max(limits.direct_bytes, static_cast<std::int64_t>(slot_bytes) + 1);
  group_.limits.symmetric_bytes = std::max(limits.symmetric_bytes, std::int64_t{1});
}

bool Engine::can(const Call& call) const {
  if (call.is_on_device() || call.rows != 1 || call.user != nullptr) return false;
  if (reduces(call.operation) && !detail::can_reduce(call.in.type)) return false;
  const Algorithm* general = nullptr;
  if (call.has_blocks()) {
    general = algorithms_of_blocks[static_cast<std::size_t>(call.operation)];
    return general != nullptr && general->payload(group_, call).count > 0;
  }
  for (const Algorithm* algorithm : choices_of(call.operation))
    if (algorithm != nullptr) general = algorithm;
  // One element at least (of each block) must fit into a slot.
  return general != nullptr && general->payload(group_, call).unit <= group_.slot_bytes;
}

bool Engine::applies(const Algorithm& algorithm, const Call& call) const {
  if (algorithm.is_symmetric != nullptr)
    // Most buffers are not symmetric, so this check comes first.
    return (call.in.window != nullptr || call.out.window != nullptr) &&
           std::max(call.in.bytes(), call.out.bytes()) >= group_.limits.symmetric_bytes &&
           algorithm.is_symmetric(call, group_.id);
  if (algorithm.is_direct && group_.direct == nullptr) return false;
  return algorithm.applies == nullptr || algorithm.applies(group_, call);
}

const Algorithm& Engine::choose(const Call& call) const {
  if (call.has_blocks()) return *algorithms_of_blocks[static_cast<std::size_t>(call.operation)];
  const Algorithm* const* algorithm = choices_of(call.operation).data();
  while (!applies(**algorithm, call)) ++algorithm;
  return **algorithm;
}

bool Engine::could_use_direct_reads(const Call& call) const {
  return can(call) && !call.has_blocks() &&
         std::ranges::any_of(choices_of(call.operation), [&](const Algorithm* algorithm) {
           return algorithm != nullptr && algorithm->is_direct && algorithm->applies(group_, call);
         });
}

void Engine::begin(Progress& p, const Call& call, const Algorithm& algorithm) {
  if (uncompared_ != 0) look_back();
  p.call = &call;
  p.algorithm = &algorithm;
  p.descriptor = descriptor_of(call, algorithm);
  p.call_number = ++calls_;
  p.entry = nullptr;
  p.payload = algorithm.payload(group_, call);
  p.published = p.read = p.seen = 0;
  p.next = nullptr;
  p.waits_for = nullptr;
  const auto [count, unit] = p.payload;
  const bool is_one_piece = static_cast<std::size_t>(count) * unit <= group_.slot_bytes;
  p.piece = is_one_piece ? count : static_cast<std::int64_t>(group_.slot_bytes / unit);
  const std::int64_t pieces = is_one_piece ? 1 : (count + p.piece - 1) / p.piece;
  p.lead = p.piece;
  p.steps = static_cast<std::uint64_t>(pieces) * (algorithm.second ? 2 : 1);
  enqueue(p);
}

// Gives a v-form its further steps, after this member has read the first one.
void Engine::grow(Progress& p, const Step& step) {
  const Lengths lengths = p.algorithm->lengths(group_, step);
  p.payload.count = lengths.longest;
  p.piece = static_cast<std::int64_t>(group_.slot_bytes / p.payload.unit);
  if (p.payload.count > p.lead && (lengths.any_is_async || !leaves_large_blocks_))
    p.steps += static_cast<std::uint64_t>((p.payload.count - p.lead + p.piece - 1) / p.piece);
  next_step_ += p.steps - 1;
  if (p.steps == 1) publish_from(p.next);
}

// Lets an operation publish from now on, or none. All members give the steps of their operations
// numbers in the same order.
void Engine::publish_from(Progress* p) {
  publishing_ = p;
  if (p == nullptr) return;
  p->first = next_step_;
  next_step_ += p->steps;
}

void Engine::enqueue(Progress& p) {
  if (last_ != nullptr)
    last_->next = &p;
  else
    reading_ = &p;
  last_ = &p;
  if (publishing_ == nullptr && p.published < p.steps) publish_from(&p);
}

void Engine::advance() {
  bool has_moved = true;
  while (has_moved && reading_ != nullptr && difference_ == 0 && !failed_read()) {
    has_moved = false;
    while (publish_next()) has_moved = true;
    while (read_next()) has_moved = true;
  }
}

Step Engine::step_of(const Progress& p, std::uint64_t i) const {
  const std::uint64_t number = p.first + i;
  const std::uint64_t piece = p.algorithm->second ? i / 2 : i;
  const std::int64_t at = piece == 0 ? 0 : p.lead + static_cast<std::int64_t>(piece - 1) * p.piece;
  const std::int64_t count = std::min(piece == 0 ? p.lead : p.piece, p.payload.count - at);
  const bool has_counts = i == 0 && p.algorithm->lengths != nullptr;
  const std::size_t bytes =
      has_counts ? group_.slot_bytes : static_cast<std::size_t>(count) * p.payload.unit;
  return {*p.call, number, at,
          count,   bytes,  Area::payload_offset(number, bytes, group_.slot_bytes)};
}

// Publishes one step, and returns whether it could.
bool Engine::publish_next() {
  if (publishing_ == nullptr) return false;
  Progress& p = *publishing_;
  const std::uint64_t i = p.published;
  if (i == p.steps) return false;  // the first step will tell whether there are more
  if (p.waits_for != nullptr && !*p.waits_for) return false;
  const Phase& phase = phase_of(*p.algorithm, i);
  // The second phase publishes what the member has computed when it read the first phase.
  if (&phase != &p.algorithm->first && p.read < i) return false;
  const Step step = step_of(p, i);
  if (!may_overwrite(step.number, step.bytes)) return false;
  publish(phase, step, p.descriptor, p.call_number);
  if (++p.published == p.steps && !p.may_grow()) publish_from(p.next);
  return true;
}

// Reads one step, and returns whether it could.
bool Engine::read_next() {
  if (reading_ == nullptr) return false;
  Progress& p = *reading_;
  const std::uint64_t i = p.read;
  const Phase& phase = phase_of(*p.algorithm, i);
  if (i >= p.published) return false;
  const Step step = step_of(p, i);
  if (!others_have_published(phase, step, p.descriptor, p.seen)) return false;
  p.seen = 0;
  // When this step is finished, the headers of the last one may be written again.
  if (uncompared_ != 0) look_back();
  if (phase.agrees != nullptr && !phase.agrees(group_, step)) difference_ = step.number;
  if (difference_ != 0) return false;
  if (p.algorithm == &meeting && i + 1 == p.steps && !finding_->meet(step.number)) return false;
  if (p.may_grow()) grow(p, step);
  // The owner of `p` may free it once it is complete.
  Progress* const next = p.next;
  finish(phase, step);
  if (failed_read()) [[unlikely]]
    return false;
  if (++p.read == p.steps) {
    reading_ = next;
    if (next == nullptr) last_ = nullptr;
  }
  return true;
}

// Whether all members have finished a step. may_overwrite() calls this only if `all_done_` is not
// sufficient, because each read of a counter may fetch a cache line from another core.
bool Engine::all_have_finished(std::uint64_t step) {
  std::uint64_t lowest = next_step_;
  for (const Area& area : group_.areas)
    lowest = std::min(lowest, area.done().load(std::memory_order_acquire));
  all_done_ = lowest;
  return all_done_ >= step;
}

// Compares the last step with the neighbours that have reached it. A neighbour that has not
// reached it yet sees this member's header, which stays until this member has finished the next
// step.
void Engine::look_back() {
  // Orders the store of this member's header before the loads below. Therefore at least one of two
  // neighbours sees the header of the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint64_t step = std::exchange(uncompared_, 0);
  const CallDescriptor& own = group_.areas[group_.self].header(step).call;
  for (const std::size_t distance : {std::size_t{1}, group_.size - 1}) {
    const StepHeader& header = group_.areas[(group_.self + distance) % group_.size].header(step);
    if (header.step.load(std::memory_order_acquire) >= step && !header.call.matches(own))
      difference_ = step;
  }
}

void Engine::leave(std::string_view why) {
  AreaPresence& presence = group_.areas[group_.self].presence();
  const std::size_t size = std::min(why.size(), sizeof presence.why - 1);
  std::memcpy(presence.why, why.data(), size);
  presence.why[size] = 0;
  presence.closed_after.store(calls_ + 1, std::memory_order_release);
}

std::uint64_t Engine::brought_by_all() const {
  std::uint64_t sum = 0;
  for (const Area& area : group_.areas) sum += area.presence().brought;
  return sum;
}

std::vector<std::int64_t> Engine::not_left() const {
  std::vector<std::int64_t> members;
  for (std::size_t k = 0; k < group_.size; ++k)
    if (group_.areas[k].presence().closed_after.load(std::memory_order_acquire) == 0)
      members.push_back(static_cast<std::int64_t>(k));
  return members;
}

bool Engine::compare_at_close() {
  if (uncompared_ != 0) look_back();
  for (std::size_t k = 0; k < group_.size && difference_ == 0; ++k)
    if (const std::uint64_t closed =
            group_.areas[k].presence().closed_after.load(std::memory_order_acquire);
        closed != 0 && closed != calls_ + 1)
      difference_ = next_step_;
  return !is_halted();
}

void Engine::look_for_closed_members() {
  if (reading_ == nullptr) return;
  const std::uint64_t step = reading_->first + reading_->read;
  for (std::size_t k = 0; k < group_.size; ++k) {
    const Area& area = group_.areas[k];
    // Acquire: a member has published all its steps before it closes the group.
    if (k != group_.self && area.presence().closed_after.load(std::memory_order_acquire) != 0 &&
        area.header(step).step.load(std::memory_order_acquire) < step)
      difference_ = step;
  }
}

std::vector<std::int64_t> Engine::awaited() const {
  std::vector<std::int64_t> members;
  if (reading_ == nullptr || is_halted()) return members;
  const Progress& p = *reading_;
  const Phase& phase = phase_of(*p.algorithm, p.read);
  const Step step = step_of(p, p.read);
  const std::uint64_t ahead = ahead_of(step.bytes);
  const auto is_awaited = [&](std::size_t k) {
    const Area& area = group_.areas[k];
    // Before this member can publish, the slot must be free.
    if (p.read >= p.published)
      return step.number >= ahead &&
             area.done().load(std::memory_order_acquire) < step.number - ahead + 1;
    if (phase.flow == Flow::root_to_all && k != root_of(*p.call)) return false;
    return area.header(step.number).step.load(std::memory_order_acquire) < step.number;
  };
  const bool is_root_alone = phase.flow == Flow::root_to_all && is_root(group_, *p.call);
  const bool is_sender_alone = phase.flow == Flow::all_to_root && !is_root(group_, *p.call);
  if (p.read < p.published && (is_root_alone || is_sender_alone)) return members;
  for (std::size_t k = 0; k < group_.size; ++k)
    if (k != group_.self && is_awaited(k)) members.push_back(static_cast<std::int64_t>(k));
  return members;
}

Engine::Published Engine::published(std::size_t member, std::uint64_t step) const {
  const Area& area = group_.areas[member];
  const StepHeader& header = area.header(step);
  const AreaPresence& presence = area.presence();
  const std::uint64_t closed_after = presence.closed_after.load(std::memory_order_acquire);
  if (header.step.load(std::memory_order_acquire) != step)
    return {false, {}, closed_after, presence.why};
  return {true, header.call, closed_after, presence.why};
}

// A header may be written again after all members have finished the step that follows, so the
// search begins with the last step that this member has finished.
std::uint64_t Engine::first_difference() const {
  const Area& own = group_.areas[group_.self];
  const std::uint64_t begin =
      std::max<std::uint64_t>(1, own.done().load(std::memory_order_relaxed));
  for (std::uint64_t step = begin; step < difference_; ++step) {
    if (own.header(step).step.load(std::memory_order_relaxed) != step) continue;
    for (std::size_t k = 0; k < group_.size; ++k)
      if (const Published other = published(k, step);
          other.is_there && !other.call.matches(own.header(step).call))
        return step;
  }
  return difference_;
}

}  // namespace rankmesh::shm

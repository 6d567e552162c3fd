// SPDX-License-Identifier: BSD-3-Clause
// The protocol of collectives in shared memory. It knows neither MPI nor processes (members are
// processes that share a segment, or threads of one process), and it never waits.
//
// Every operation consists of steps, which are the same on all members. Steps are numbered over the
// life of the group. The number of steps of a v-form is known only after its first step, in which
// the members publish their counts; until then, no later operation publishes. In each step a member
//   1. publishes: it writes its payload and the descriptor of its call, then the number of the
//   step;
//   2. looks for the number of the step in the areas of the members for which it waits, and
//      compares descriptors;
//   3. reads their payloads;
//   4. writes the number of the step to its counter of finished steps.
//
// Every member publishes in every step, even without a payload, so that others can compare its
// call. In some steps a member does not wait for all others. The root of a broadcast, for example,
// waits for nobody. Such a member compares its descriptor with those of its two neighbours in the
// group before it finishes its next step. Of two neighbours, the one that publishes later sees the
// descriptor of the other one. So every two neighbours are compared. If any two members make
// different calls, some two neighbours do, too.
//
// A payload may be read in its step and in the step after it. Its slot is reused ahead_of() steps
// later. A member writes to the slot only when all members have finished the step after the step of
// the payload. This rule also holds across operations, so no operation needs a barrier at its end.
//
// Memory orders: the number of a step is stored with release order and loaded with acquire order,
// so a member that sees the number also sees the payload. The counter of finished steps is stored
// with release order and loaded with acquire order, so all reads of a payload happen before its
// slot is overwritten. Nothing else is shared: payloads are ordinary memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "record/detail/recorded_call.hpp"
#include "transport/shm/algorithm.hpp"

namespace rankmesh::shm {

/// An operation that has begun. It must not move until it is complete. Its members have no initial
/// values, because most operations are complete before they need a Progress.
struct Progress {
  const Call* call;
  const Algorithm* algorithm;
  CallDescriptor descriptor;
  std::uint64_t call_number;     ///< number of the call in its group, from 1
  record::format::Entry* entry;  ///< the entry that run_small() has recorded, or null
  Payload payload;               ///< of the whole operation
  std::int64_t lead;             ///< elements (of each block) in the first step or pair of steps
  std::int64_t piece;            ///< elements (of each block) in the others
  std::uint64_t first;           ///< number of the operation's first step, once it may publish
  std::uint64_t steps;           ///< known so far, see may_grow()
  std::uint64_t published;       ///< steps that this member has published
  std::uint64_t read;            ///< steps that this member has finished
  std::size_t seen;              ///< members before this one have published the next step to read
  Progress* next;
  const bool* waits_for;  ///< it publishes nothing before this is true; or null

  [[nodiscard]] bool is_complete() const { return read == steps; }
  /// Returns whether the first step will tell how many further steps there are.
  [[nodiscard]] bool may_grow() const { return algorithm->lengths != nullptr && read == 0; }
  /// Returns the last step, in which others may complete the operation; Finding::no_step if this
  /// member has not published it.
  [[nodiscard]] std::uint64_t last_step() const {
    return published == steps ? first + steps - 1 : Finding::no_step;
  }
  /// Returns whether the members have only compared a v-form, and leave it to another transport.
  [[nodiscard]] bool is_left_to_others() const { return steps == 1 && payload.count > lead; }
};

/// Carries out the operations of one group. Used by one thread at a time.
class Engine {
 public:
  /// @param areas  the memory of each member, in group order.
  /// @param locals  the local rank of each member, for symmetric memory.
  /// @param self  the place of this member in `areas`.
  /// @param slot_bytes  bytes per slot of an area, a multiple of `line`.
  /// @param group  identifies the group in SymmetricWindow::groups.
  /// @param recording  where run_small() records calls.
  /// @param reader  reads ordinary memory of the other members; null if the system refuses this.
  Engine(const std::vector<std::byte*>& areas, std::vector<std::int32_t> locals, int self,
         std::size_t slot_bytes, Limits limits, const void* group,
         const detail::Recording& recording = {}, MemoryReader* reader = nullptr);

  /// Returns whether an algorithm exists for the operation with this type and number of members.
  [[nodiscard]] bool can(const Call& call) const;
  /// Returns whether the call is carried out directly in the members' symmetric memory.
  [[nodiscard]] bool uses_symmetric_memory(const Call& call) const {
    return can(call) && choose(call).is_symmetric != nullptr;
  }
  /// Begins an operation, which runs after those that began before it. The call, its buffers and
  /// `progress` must stay until the operation is complete. It publishes nothing yet: call
  /// advance().
  void begin(Progress& progress, const Call& call) { begin(progress, call, choose(call)); }
  /// Begins an operation that is carried out by this algorithm.
  void begin(Progress& progress, const Call& call, const Algorithm& algorithm);
  /// Leaves blocking v-forms that need more than one step to another transport. All members must
  /// call it, before any operation. See Progress::is_left_to_others().
  void leave_large_blocks() { leaves_large_blocks_ = true; }
  /// Continues the operations that have begun as far as the other members allow. Never waits.
  void advance();
  /// Forgets the operations that have begun, because a member is gone. Nothing may begin after it.
  void give_up() { publishing_ = reading_ = last_ = nullptr; }

  /// Returns the reason why the group has ended early, if a member has found one.
  [[nodiscard]] Finding& finding() const { return *finding_; }
  /// Returns whether no operation may continue: the group has ended early, or this member has seen
  /// that another member makes another call. While a finding is being written, operations continue,
  /// so that the writer sees the calls of late members.
  [[nodiscard]] bool is_halted() const { return difference_ != 0 || finding_->is_halted(); }
  /// Returns whether this operation is the oldest one that is not complete.
  [[nodiscard]] bool is_oldest(const Progress& progress) const { return reading_ == &progress; }
  /// Returns the step in which this member has seen a difference, or 0.
  [[nodiscard]] std::uint64_t difference() const { return difference_; }
  /// Returns the read of another member's memory that has failed, if any. No operation continues
  /// after it.
  [[nodiscard]] std::optional<FailedRead> failed_read() const {
    return group_.direct == nullptr ? std::nullopt : group_.direct->failure;
  }
  /// Returns whether the members read ordinary memory of each other in this call.
  [[nodiscard]] bool uses_direct_reads(const Call& call) const {
    return can(call) && choose(call).is_direct;
  }
  /// Returns whether they would, if the system allowed it.
  [[nodiscard]] bool could_use_direct_reads(const Call& call) const;
  /// Looks for members that have closed the group, and therefore do not take part in the operations
  /// for which this member waits. Such a member counts as a difference.
  void look_for_closed_members();
  /// Returns the members without which the operation for which this member waits cannot continue.
  [[nodiscard]] std::vector<std::int64_t> awaited() const;
  /// Compares what has not been compared yet. @return whether all members that are compared have
  /// made the same calls. Call it when no member makes further calls.
  bool compare_at_close();

  /// What a member has published for a step.
  struct Published {
    bool is_there;               ///< false if the member has not reached this step
    CallDescriptor call;         ///< if it is there
    std::uint64_t closed_after;  ///< see AreaPresence
    const char* why_left;        ///< see AreaPresence
  };
  [[nodiscard]] Published published(std::size_t member, std::uint64_t step) const;
  /// Returns the payload that a member has published for a step with payloads of this size.
  [[nodiscard]] const std::byte* payload(std::size_t member, std::uint64_t step,
                                         std::size_t bytes) const {
    return group_.areas[member].at(Area::payload_offset(step, bytes, group_.slot_bytes));
  }
  /// Returns the first step, among those that can still be read, in which members differ.
  [[nodiscard]] std::uint64_t first_difference() const;
  /// Returns the number of the call that step belongs to, for steps that this member has published
  /// and that can still be read.
  [[nodiscard]] std::uint64_t call_of(std::uint64_t step) const {
    return call_of_step_[step % headers];
  }
  /// The number of calls so far. A call may take several operations.
  [[nodiscard]] std::uint64_t& calls() { return calls_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] const Group& group() const { return group_; }
  /// Tells the other members that this member makes no further calls.
  /// @param why  The reason, if the member leaves without closing the group; empty otherwise.
  void leave(std::string_view why);
  /// See CallGuard.
  void bring(std::uint64_t number) { group_.areas[group_.self].presence().brought = number; }
  [[nodiscard]] std::uint64_t brought_by_all() const;
  /// Returns the members that have not called leave().
  [[nodiscard]] std::vector<std::int64_t> not_left() const;
  /// Reverses leave().
  void stay() {
    group_.areas[group_.self].presence().closed_after.store(0, std::memory_order_release);
  }

 private:
  template <const Algorithm& algorithm>
  friend Outcome run_in_one_step(Engine& engine, Progress& p, const Call& call, int looks);

  [[nodiscard]] const Algorithm& choose(const Call& call) const;
  [[nodiscard, gnu::noinline]] bool is_chosen(const Algorithm& algorithm, const Call& call) const {
    return &choose(call) == &algorithm;
  }
  [[nodiscard]] bool applies(const Algorithm& algorithm, const Call& call) const;
  [[gnu::noinline]] void enqueue(Progress& p);
  void publish_from(Progress* p);
  void grow(Progress& p, const Step& step);

  bool publish_next();
  bool read_next();
  [[nodiscard]] Step step_of(const Progress& p, std::uint64_t i) const;
  [[nodiscard]] bool may_overwrite(std::uint64_t step, std::size_t bytes);
  [[nodiscard, gnu::noinline]] bool all_have_finished(std::uint64_t step);
  void publish(const Phase& phase, const Step& step, const CallDescriptor& descriptor,
               std::uint64_t call_number);
  [[nodiscard]] bool has_published(std::size_t member, std::uint64_t step,
                                   const CallDescriptor& descriptor);
  [[nodiscard]] bool others_have_published(const Phase& phase, const Step& step,
                                           const CallDescriptor& descriptor, std::size_t& seen);
  void finish(const Phase& phase, const Step& step);
  [[gnu::noinline]] void look_back();

  Group group_;
  record::format::Header* record_;  // null if calls are not recorded
  std::uint64_t recorded_group_;    // see detail::Recording
  Finding* finding_;
  bool leaves_large_blocks_ = false;
  std::uint64_t difference_ = 0;
  std::uint64_t uncompared_ = 0;  // The last step, if not all members were compared in it; or 0.
  std::uint64_t calls_ = 0;
  std::uint64_t call_of_step_[headers] = {};
  std::uint64_t next_step_ = 1;
  std::uint64_t all_done_ = 0;  // All members are known to have finished this step.
  // A list of operations in the order in which they began. The operation that publishes next can be
  // ahead of the operation that reads next, so a member publishes early what the others wait for.
  Progress* publishing_ = nullptr;
  Progress* reading_ = nullptr;
  Progress* last_ = nullptr;
};

// The parts of a step are inlined into the fast path of one_step.hpp.

// Whether the slot of a payload may be written. The slot contains the payload of the step `ahead`
// steps before. Other members may read it until they have finished the step after that one.
inline bool Engine::may_overwrite(std::uint64_t step, std::size_t bytes) {
  const std::uint64_t ahead = ahead_of(bytes);
  return step < ahead || all_done_ >= step - ahead + 1 || all_have_finished(step - ahead + 1);
}

// Every member publishes its call; the payload is written only where another member reads it.
inline void Engine::publish(const Phase& phase, const Step& step, const CallDescriptor& descriptor,
                            std::uint64_t call_number) {
  if (phase.publish != nullptr && (phase.flow == Flow::all_to_all ||
                                   (phase.flow == Flow::root_to_all) == is_root(group_, step.call)))
    phase.publish(group_, step);
  StepHeader& header = group_.areas[group_.self].header(step.number);
  header.call = descriptor;
  call_of_step_[step.number % headers] = call_number;
  // Release: a member that sees the number also sees the payload and the descriptor.
  header.step.store(step.number, std::memory_order_release);
}

// Whether a member has published a step of the same call. Another call is noted as a difference.
inline bool Engine::has_published(std::size_t member, std::uint64_t step,
                                  const CallDescriptor& descriptor) {
  const StepHeader& header = group_.areas[member].header(step);
  if (header.step.load(std::memory_order_acquire) < step) return false;
  if (header.call.matches(descriptor)) [[likely]]
    return true;
  difference_ = step;
  return false;
}

// Whether all members for which this member waits have published. `seen` stores how many of them
// have published, so that polling does not check them again.
inline bool Engine::others_have_published(const Phase& phase, const Step& step,
                                          const CallDescriptor& descriptor, std::size_t& seen) {
  if (phase.flow == Flow::root_to_all)
    return is_root(group_, step.call) || has_published(root_of(step.call), step.number, descriptor);
  if (phase.flow == Flow::all_to_root && !is_root(group_, step.call)) return true;
  for (; seen < group_.size; ++seen)
    if (seen != group_.self && !has_published(seen, step.number, descriptor)) return false;
  return true;
}

inline void Engine::finish(const Phase& phase, const Step& step) {
  if (phase.read != nullptr) phase.read(group_, step);
  const bool has_compared = phase.flow == Flow::all_to_all ||
                            (phase.flow == Flow::all_to_root && is_root(group_, step.call));
  if (!has_compared) uncompared_ = step.number;
  // Release: a member that sees the counter may overwrite what this member has read.
  group_.areas[group_.self].done().store(step.number, std::memory_order_release);
}

}  // namespace rankmesh::shm

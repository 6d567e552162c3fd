// SPDX-License-Identifier: BSD-3-Clause
#include "detail/shm_transport.hpp"

#include <utility>

#include <fmt/format.h>

#include "detail/kept_call.hpp"
#include "detail/mpi_call.hpp"
#include "detail/telling_others.hpp"
#include "rankmesh/base/error.hpp"
#include "wait/detail/few_polls.hpp"

namespace rankmesh {
namespace {

// How often a member polls before it yields its core: about half a millisecond if each member has a
// core. If members share cores, the member for which it waits probably needs this core.
constexpr int pauses_with_own_core = 10000;
constexpr int pauses_on_shared_core = 8;
// How often a member yields its core before it waits through the Waiter, which reads clocks, makes
// progress in MPI and answers questions.
constexpr int yields = 200;
// How often an unfinished operation is polled between two checks for members that have left.
constexpr int polls_per_leaving_look = 16;

}  // namespace

// An operation in flight. It owns the call and its record in the engine.
class ShmTransport::PendingSteps final : public Pending {
 public:
  // @param only_compares  Whether another transport carries the call, which this member starts.
  // @param waits_for      See Progress.
  PendingSteps(ShmTransport& transport, const Call& call, bool only_compares,
               const bool* waits_for = nullptr)
      : transport_{transport}, record_{std::make_unique<Kept>(call)} {
    if (waits_for == nullptr) transport_.throw_if_ended();  // else MPI has the call already
    const Call& kept = record_->kept.call;
    if (only_compares)
      transport_.engine_.begin(record_->progress, record_->meeting.emplace(kept, true),
                               shm::meeting);
    else
      transport_.engine_.begin(record_->progress, kept);
    record_->progress.waits_for = waits_for;
    transport_.engine_.advance();
  }
  // @param call  It must stay valid.
  PendingSteps(ShmTransport& transport, const Call& call, const shm::Algorithm& algorithm)
      : transport_{transport}, record_{std::make_unique<Kept>(call)} {
    transport_.throw_if_ended();
    transport_.engine_.begin(record_->progress, call, algorithm);
    transport_.engine_.advance();
  }
  ~PendingSteps() override {
    if (record_->progress.is_complete()) return;
    // The engine still refers to the record, and other members to its buffers, so the record is
    // leaked. What the step waits for may be gone.
    static constexpr bool never = false;
    if (record_->progress.waits_for != nullptr) record_->progress.waits_for = &never;
    (void)record_.release();
  }
  bool test() override { return transport_.try_to_complete(record_->progress); }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return transport_.engine_.awaited();
  }
  [[nodiscard]] bool is_polled() const override {
    const shm::Progress& progress = record_->progress;
    return progress.published < progress.steps || progress.may_grow();
  }

 private:
  struct Kept {
    explicit Kept(const Call& call) : kept{call} {}
    detail::KeptCall kept;
    std::optional<shm::Meeting> meeting;
    shm::Progress progress{};
  };
  ShmTransport& transport_;
  std::unique_ptr<Kept> record_;
};

ShmTransport::ShmTransport(Place place, shm::Limits limits)
    : place_{std::move(place)},
      engine_{place_.areas, place_.locals, place_.self,      place_.slot_bytes,
              limits,       place_.key(),  place_.recording, place_.reader()},
      messages_{place_.rings_to.empty()
                    ? nullptr
                    : std::make_unique<shm::Messages>(place_.rings_to, place_.rings_from)},
      pauses_{place_.is_oversubscribed ? pauses_on_shared_core : pauses_with_own_core} {}

std::string ShmTransport::why_not(const Call& call) const {
  if (is_point_to_point(call.operation) && messages_ == nullptr) return why_no_messages_;
  if (call.has_blocks())
    return "shared memory does not carry this operation with blocks of different sizes";
  return std::string{"shared memory does not carry "} + std::string{to_string(call.operation)} +
         " of " + std::string{to_string(call.out.type)};
}

std::string ShmTransport::how(const Call& call) const {
  if (is_point_to_point(call.operation))
    return fmt::format("messages of more than {} bytes over mpi, announced in shared memory",
                       shm::Ring::largest);
  if (call.has_blocks() && large_ != nullptr)
    return fmt::format(
        "if the blocks do not fit into {} bytes, a blocking call goes over mpi after its "
        "comparison",
        place_.slot_bytes);
  if (engine_.uses_direct_reads(call)) return "members read each other's buffers directly";
  if (place_.processes == nullptr || !engine_.could_use_direct_reads(call)) return {};
  return "in pieces through slots: " + place_.processes->why_not();
}

void ShmTransport::run(const Call& call, Waiter& waiter) {
  if (is_point_to_point(call.operation)) return run_message(call, waiter);
  shm::Progress progress;
  const shm::Outcome outcome = shm::run_small(engine_, progress, call, pauses_);
  if (outcome == shm::Outcome::complete) return;
  if (outcome == shm::Outcome::not_begun) {
    if (large_ != nullptr && !call.is_async && !detail::has_int_blocks(call)) {
      Call in_slots = call;
      in_slots.is_async = true;  // the others learn it in the first step, and do not enter MPI
      return run(in_slots, waiter);
    }
    throw_if_ended_in(call, waiter);
    engine_.begin(progress, call);
    if (place_.recording.record != nullptr)
      progress.entry = &detail::add_entry(
          *place_.recording.record, detail::next_of(*place_.recording.record), progress.descriptor,
          place_.recording.group | progress.call_number |
              static_cast<std::uint64_t>(carrier()) << record::format::carrier_shift);
  }
  poll(progress, call, waiter);
}

bool ShmTransport::meet(const Call& call, bool is_async, Waiter& waiter) {
  const shm::Meeting meeting{call, is_async};
  shm::Progress progress;
  const shm::Outcome outcome = shm::meeting.run_small(engine_, progress, meeting, pauses_);
  if (outcome == shm::Outcome::complete) return meeting.any_is_async;
  if (outcome == shm::Outcome::not_begun) {
    throw_if_ended_in(call, waiter);
    engine_.begin(progress, meeting, shm::meeting);
  }
  poll(progress, meeting, waiter);
  return meeting.any_is_async;
}

// Waits for an operation that has begun, and writes its times and its end to the record.
void ShmTransport::poll(shm::Progress& progress, const Call& call, Waiter& waiter) {
  if (progress.entry == nullptr) return poll_unrecorded(progress, call, waiter);
  record::format::Header& header = *place_.recording.record;
  detail::take_time(header, *progress.entry);
  try {
    poll_unrecorded(progress, call, waiter);
  } catch (...) {
    detail::set_state(header, *progress.entry, record::State::failed);
    throw;
  }
  detail::set_state(header, *progress.entry, record::State::ended);
}

void ShmTransport::poll_unrecorded(shm::Progress& progress, const Call& call, Waiter& waiter) {
  wait_for(progress, call, waiter);
  if (!progress.is_left_to_others()) return;
  std::unique_ptr<Pending> pending;
  detail::telling_others(*this, call, progress.call_number, waiter,
                         [&] { pending = large_->start(call); });
  waiter.finish(call, progress.call_number, std::move(pending));
}

// The waiter finds out whether the group has ended because ranks are lost.
void ShmTransport::throw_if_ended_in(const Call& call, Waiter& waiter) {
  if (engine_.is_halted()) waiter.wait(call, calls() + 1, [&]() -> bool { end_early(); }, {}, {});
}

// Waits for an operation that has begun: spins, then yields the core, then waits through the
// waiter.
void ShmTransport::wait_for(shm::Progress& progress, const Call& call, Waiter& waiter) {
  try {
    engine_.advance();
    if (progress.is_complete()) return;
    for (detail::FewPolls few{pauses_, yields}; !engine_.is_halted() && few.next();) {
      engine_.advance();
      if (progress.is_complete()) return;
    }
    // What ends the operation without completing it is thrown inside the waiter, which knows
    // whether it is the result of a loss of ranks.
    waiter.wait(
        call, progress.call_number, [&] { return try_to_complete(progress); },
        [&] { return engine_.awaited(); }, [&] { return may_give_up(progress); });
  } catch (const LostRanks&) {
    engine_.give_up();
    throw;
  } catch (const Error& error) {
    give_up(error);
    engine_.give_up();
    throw;
  } catch (...) {
    engine_.give_up();  // `progress` goes out of scope, and nothing may follow it
    throw;
  }
}

// Makes progress, and returns whether the operation is complete. Throws if it never will be.
bool ShmTransport::try_to_complete(const shm::Progress& progress) {
  if (progress.is_complete()) return true;
  // A meeting is complete once a member has gone on into MPI, even if another one has given up
  // since then: the first one needs this member there. It reads slots only, never the buffers of
  // the one that gave up.
  if (is_meeting(progress) || !engine_.is_halted()) engine_.advance();
  if (progress.is_complete()) return true;
  if (++polls_ % polls_per_leaving_look == 0) engine_.look_for_closed_members();
  throw_if_ended();
  throw_if_unreadable(engine_.failed_read());
  return false;
}

std::unique_ptr<Pending> ShmTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return start_message(call);
  return std::make_unique<PendingSteps>(*this, call, false);
}

std::unique_ptr<Pending> ShmTransport::start_comparison(const Call& call, Carry carry) {
  auto comparison = std::make_unique<PendingSteps>(*this, call, true);
  if (carry) carry();
  return comparison;
}

std::unique_ptr<Pending> ShmTransport::start_end(const Call& call, const bool& has_run) {
  --calls();  // it is a part of the last call
  return std::make_unique<PendingSteps>(*this, call, true, &has_run);
}

std::unique_ptr<Pending> ShmTransport::start_step(const Call& call, const shm::Algorithm& algorithm,
                                                  std::uint64_t number) {
  calls() = number - 1;  // the engine counts this call itself
  return std::make_unique<PendingSteps>(*this, call, algorithm);
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/compared_transport.hpp"

#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "detail/kept_call.hpp"
#include "detail/record_call.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

// When the operation of MPI begins: together with the comparison step (meeting), after it, or
// never, because another transport carries the call.
enum class MpiBegins : std::uint8_t { at_once, after_meeting, never };

// Calls MPI after the comparison step. If MPI fails on this member, the other members must not wait
// for it. A UsageError reports an exception of a function of the program; the operation is then
// complete.
template <class Action>
void telling_others(ShmTransport& comparison, Action&& action) {
  try {
    action();
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    comparison.give_up(error);
    throw;
  } catch (const std::exception& error) {
    comparison.give_up(Error{error.what()});
    throw;
  }
}

// A comparison step, and the operation of MPI.
class ComparedPending final : public Pending {
 public:
  ComparedPending(const Call& call, bool is_async, ShmTransport& comparison, MpiTransport& mpi,
                  MpiBegins mpi_begins)
      : mpi_{mpi},
        record_{std::make_unique<Record>(call, is_async)},
        has_begun_{mpi_begins != MpiBegins::after_meeting} {
    comparison.throw_if_ended();
    if (mpi_begins != MpiBegins::never) mpi.validate(call);  // before any member goes on
    meeting_ = comparison.start_meeting(record_->meeting);
    if (mpi_begins != MpiBegins::at_once) return;
    try {
      telling_others(comparison, [&] { carried_ = mpi.start(call); });
    } catch (...) {
      (void)record_.release();  // the engine may still refer to it
      throw;
    }
  }
  ~ComparedPending() override {
    if (meeting_ == nullptr) return;
    meeting_.reset();
    (void)record_.release();  // the engine may still refer to it
  }
  bool test() override {
    if (meeting_ != nullptr) {
      if (!meeting_->test()) return false;
      meeting_.reset();
    }
    if (!has_begun_) carried_ = mpi_.start(record_->meeting);
    has_begun_ = true;
    return carried_ == nullptr || carried_->test();
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return meeting_ == nullptr ? std::vector<std::int64_t>{} : meeting_->awaited();
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return carried_ != nullptr && carried_->is_in_mpi();
  }
  [[nodiscard]] bool is_polled() const override {
    return !has_begun_ || (meeting_ != nullptr && meeting_->is_polled());
  }

 private:
  struct Record {
    Record(const Call& call, bool is_async) : kept{call}, meeting{kept.call, is_async} {}
    detail::KeptCall kept;
    shm::Meeting meeting;
  };
  MpiTransport& mpi_;
  std::unique_ptr<Record> record_;
  std::unique_ptr<Pending> meeting_;
  std::unique_ptr<Pending> carried_;
  bool has_begun_;  // the operation of MPI, or there is none
};

}  // namespace

void ComparedTransport::run(const Call& call, Waiter& waiter) {
  if (is_point_to_point(call.operation)) return mpi_.run(call, waiter);
  mpi_.validate(call);  // before any member goes on
  detail::RecordedCall recorded =
      detail::record_call(waiter, call, comparison_.calls() + 1, carrier());
  const shm::Meeting meeting{call, false};
  comparison_.meet(meeting, waiter);
  mpi_.set_calls(comparison_.calls() - 1);
  if (!meeting.any_is_async)
    return telling_others(comparison_, [&] { mpi_.run_recorded(call, waiter, recorded); });
  // MPI does not match a blocking collective with a non-blocking collective.
  recorded.enter();
  std::unique_ptr<Pending> pending;
  telling_others(comparison_, [&] { pending = mpi_.start(call); });
  waiter.finish(call, comparison_.calls(), std::move(pending));
  recorded.end();
}

std::unique_ptr<Pending> ComparedTransport::start(const Call& call) {
  if (is_point_to_point(call.operation)) return mpi_.start(call);
  return std::make_unique<ComparedPending>(call, true, comparison_, mpi_, MpiBegins::at_once);
}

std::unique_ptr<Pending> ComparedTransport::start_to_wait(const Call& call) {
  if (is_point_to_point(call.operation)) return mpi_.start(call);
  return std::make_unique<ComparedPending>(call, true, comparison_, mpi_, MpiBegins::after_meeting);
}

std::unique_ptr<Pending> ComparedTransport::start_comparison(const Call& call) {
  return std::make_unique<ComparedPending>(call, false, comparison_, mpi_, MpiBegins::never);
}

}  // namespace rankmesh

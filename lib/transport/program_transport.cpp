// SPDX-License-Identifier: BSD-3-Clause
#include "detail/program_transport.hpp"

#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "detail/kept_call.hpp"
#include "detail/record_call.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/node_board.hpp"

namespace rankmesh {
namespace {

// How often a comparison is polled before the Waiter polls it, which reads clocks.
constexpr int looks = 200;

// Operations with one buffer do not use the other one.
bool is_on_device(const Call& call) {
  return call.in.kind == MemoryKind::device || call.out.kind == MemoryKind::device;
}

}  // namespace

// An asynchronous operation. It is started at once, and is complete only if the calls are equal.
class ProgramTransport::PendingCall final : public Pending {
 public:
  PendingCall(const Call& call, ProgramTransport& transport)
      : record_{std::make_unique<Record>(call)},
        transport_{transport},
        exchange_{transport.meeting_.exchange} {
    if (transport.meeting_.shared != nullptr)
      compared_in_memory_ = transport.meeting_.shared->start_meeting(record_->meeting);
    else if (exchange_ != nullptr)
      compared_ = exchange_->begin(call, true, [](bool) {});
    try {
      carried_ = transport.own_->start(record_->kept.call);
    } catch (...) {
      (void)record_.release();  // other members may still refer to it
      throw;
    }
  }
  ~PendingCall() override {
    if (compared_in_memory_ == nullptr && carried_ == nullptr) return;
    compared_in_memory_.reset();
    carried_.reset();
    (void)record_.release();  // other members may still refer to it
  }
  bool test() override {
    if (compared_in_memory_ != nullptr) {
      if (!compared_in_memory_->test()) return false;
      compared_in_memory_.reset();
    }
    if (compared_ != nullptr) {
      if (!exchange_->test(*compared_)) return false;
      compared_.reset();
    }
    if (carried_ != nullptr && !test_carried()) return false;
    carried_.reset();
    return true;
  }
  [[nodiscard]] std::vector<std::int64_t> awaited() const override {
    return compared_in_memory_ == nullptr ? std::vector<std::int64_t>{}
                                          : compared_in_memory_->awaited();
  }

 private:
  struct Record {
    explicit Record(const Call& call) : kept{call}, meeting{kept.call, true} {}
    detail::KeptCall kept;
    shm::Meeting meeting;
  };
  [[nodiscard]] bool test_carried() const {
    try {
      return carried_->test();
    } catch (...) {
      transport_.fail(fmt::format("{}, asynchronous", to_string(record_->kept.call.operation)));
    }
  }

  std::unique_ptr<Record> record_;
  ProgramTransport& transport_;
  detail::CallExchange* exchange_;
  std::unique_ptr<Pending> compared_in_memory_;
  std::shared_ptr<detail::CallExchange::Comparison> compared_;
  std::unique_ptr<Pending> carried_;
};

ProgramTransport::ProgramTransport(Identity identity, std::unique_ptr<Transport> own,
                                   Meeting meeting, mpi::CommunicatorView comm,
                                   std::int64_t largest_count)
    : identity_{std::move(identity)},
      own_{std::move(own)},
      meeting_{meeting},
      mpi_{comm, largest_count} {}

bool ProgramTransport::supports(const Call& call) const {
  if (call.user != nullptr) return false;
  if (is_point_to_point(call.operation) && !is_on_device(call)) return false;
  return (!call.is_async || own_->has_async_forms()) && own_->supports(call);
}

std::string ProgramTransport::why_not(const Call& call) const {
  if (is_point_to_point(call.operation) && !is_on_device(call))
    return "messages between two members do not use transports of the program";
  if (call.user != nullptr) return "transports of the program do not run functions of the program";
  if (call.is_async && !own_->has_async_forms()) return "it has no asynchronous forms";
  return own_->why_not(call);
}

std::uint64_t ProgramTransport::next_number() const {
  if (meeting_.shared != nullptr) return meeting_.shared->calls() + 1;
  return (meeting_.exchange != nullptr ? meeting_.exchange->calls() : meeting_.mpi->calls()) + 1;
}

void ProgramTransport::run(const Call& call, Waiter& waiter) {
  mpi::require_not_finalised();
  if (is_on_device(call)) return queue(call, waiter);
  const std::uint64_t number = next_number();
  detail::RecordedCall recorded = detail::record_call(waiter, call, number, carrier());
  const bool any_is_async = meet(call, waiter);
  recorded.enter();
  if (!any_is_async) {
    carry(call, waiter, number);
  } else {
    // The others have started the asynchronous form, which may use another transport.
    Call started = call;
    started.is_async = true;
    Transport& transport = supports(started) ? *own_ : mpi_;
    waiter.finish(started, number, transport.start(started));
  }
  recorded.end();
}

// Queues a call on device memory, which waits for the other members on the device.
void ProgramTransport::queue(const Call& call, Waiter& waiter) {
  try {
    own_->run(call, waiter);
  } catch (...) {
    fail(waiter.activity_of(call));
  }
}

// Waits until all members have reached the call. Returns whether any member uses the asynchronous
// form.
bool ProgramTransport::meet(const Call& call, Waiter& waiter) {
  if (meeting_.shared != nullptr) {
    const shm::Meeting meeting{call, false};
    meeting_.shared->meet(meeting, waiter);
    return meeting.any_is_async;
  }
  if (meeting_.exchange != nullptr) return meet_by_exchange(call, waiter);
  auto barrier = meeting_.mpi->start({.operation = Operation::barrier});
  waiter.finish(call, meeting_.mpi->calls(), std::move(barrier));
  return false;
}

bool ProgramTransport::meet_by_exchange(const Call& call, Waiter& waiter) {
  detail::CallExchange& exchange = *meeting_.exchange;
  bool any_is_async = false;
  const auto comparison =
      exchange.begin(call, false, [&any_is_async](bool is_async) { any_is_async = is_async; });
  try {
    for (int i = 0; i < looks && !detail::CallExchange::is_complete(*comparison); ++i)
      exchange.advance();
    if (!detail::CallExchange::is_complete(*comparison))
      waiter.wait(call, exchange.calls(), [&] { return exchange.test(*comparison); }, {});
  } catch (...) {
    exchange.end(std::current_exception());  // `any_is_async` goes out of scope
    throw;
  }
  return any_is_async;
}

// Runs the program's transport. An error is thrown inside the Waiter, which then breaks the group.
void ProgramTransport::carry(const Call& call, Waiter& waiter, std::uint64_t number) {
  try {
    std::optional<detail::BoardEntry> entry;
    if (waiter.published_call != nullptr)
      entry.emplace(*waiter.published_call, waiter.label, call.operation, number);
    own_->run(call, waiter);
  } catch (...) {
    waiter.wait(call, number,
                [&]() -> bool {
                  // If an operation fails because of another member, this member throws an error
                  // that contains the reason of the other member.
                  if (meeting_.shared != nullptr) meeting_.shared->throw_if_ended();
                  if (meeting_.exchange != nullptr) meeting_.exchange->throw_if_ended();
                  fail(waiter.activity_of(call));
                },
                {});
  }
}

// Rethrows the exception that is being handled: an Error unchanged, any other exception as a
// TransportError.
void ProgramTransport::fail(const std::string& activity) const {
  std::string what = "an exception that is no std::exception";
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::throw_with_nested(
      TransportError{fmt::format("{}: transport '{}': {}", activity, identity_.name, what),
                     "the group is broken; the cause may be on another member"});
}

std::unique_ptr<Pending> ProgramTransport::start(const Call& call) {
  mpi::require_not_finalised();
  if (is_on_device(call)) return own_->start(call);
  try {
    return std::make_unique<PendingCall>(call, *this);
  } catch (const std::exception& error) {
    const Error why{error.what()};
    if (meeting_.shared != nullptr) meeting_.shared->give_up(why);
    if (meeting_.exchange != nullptr) meeting_.exchange->end(std::make_exception_ptr(why));
    fail(fmt::format("{}, asynchronous", to_string(call.operation)));
  }
}

}  // namespace rankmesh

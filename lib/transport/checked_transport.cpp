// SPDX-License-Identifier: BSD-3-Clause
#include "detail/checked_transport.hpp"

#include <exception>
#include <utility>

#include "detail/kept_call.hpp"
#include "detail/record_call.hpp"
#include "rankmesh/mpi/error.hpp"
#include "wait/detail/few_polls.hpp"

namespace rankmesh {
namespace {

// How often a comparison is polled before the Waiter polls it, which reads clocks.
constexpr int polls = 200;

// Waits for a comparison. Errors are thrown inside the Waiter, which then breaks the group.
template <class Comparisons, class Compared>
void wait_for(Comparisons& comparisons, const Compared& compared, const Call& call,
              std::uint64_t number, Waiter& waiter) {
  for (detail::FewPolls few{polls}; few.next();) {
    if (comparisons.is_complete(compared)) return;
    comparisons.advance();
  }
  waiter.wait(call, number, [&] { return comparisons.test(compared); }, {});
}

}  // namespace

// A collective that is compared by an exchange.
class CheckedTransport::PendingCollective final : public Pending {
 public:
  // @param mpi  Starts the operation after the comparison; null if another transport carries it.
  PendingCollective(const Call& call, detail::CallExchange& exchange, MpiTransport* mpi)
      : exchange_{exchange} {
    if (mpi == nullptr) {
      comparison_ = exchange.begin(call, false, {});
      return;
    }
    kept_ = std::make_unique<detail::KeptCall>(call);
    comparison_ =
        exchange.begin(call, true, [this, mpi](bool) { carried_ = mpi->start(kept_->call); });
  }
  bool test() override {
    if (comparison_ != nullptr) {
      if (!exchange_.test(*comparison_)) return false;
      comparison_.reset();
    }
    return carried_ == nullptr || carried_->test();
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return carried_ != nullptr && carried_->is_in_mpi();
  }

 private:
  detail::CallExchange& exchange_;
  std::unique_ptr<detail::KeptCall> kept_;
  std::shared_ptr<detail::CallExchange::Comparison> comparison_;
  std::unique_ptr<Pending> carried_;
};

// A message that is compared by headers.
class CheckedTransport::PendingMessage final : public Pending {
 public:
  PendingMessage(const Call& call, detail::MessageComparison& messages, MpiTransport* mpi)
      : messages_{messages}, operation_{call.operation}, is_compared_{messages.compares(call)} {
    if (mpi == nullptr)
      exchange_ = messages.begin(call, {});
    else
      exchange_ = messages.begin(call, [this, mpi, call] { carried_ = mpi->start(call); });
  }
  ~PendingMessage() override {
    if (exchange_ != nullptr) messages_.forget(*exchange_);
  }
  bool test() override {
    if (exchange_ != nullptr) {
      if (!messages_.test(*exchange_)) return false;
      exchange_.reset();
    }
    if (carried_ == nullptr || carried_->test()) return true;
    messages_.throw_if_failed();
    return false;
  }
  [[nodiscard]] bool is_in_mpi() const override {
    return carried_ != nullptr && carried_->is_in_mpi();
  }
  // A receive that has been compared is not cancelled, because its sender has begun to send.
  void cancel() override {
    if (operation_ != Operation::recv) return;
    if (exchange_ != nullptr && messages_.withdraw(*exchange_)) {
      exchange_.reset();
      was_cancelled_ = true;
    }
    if (!is_compared_ && carried_ != nullptr) carried_->cancel();
  }
  [[nodiscard]] bool was_cancelled() const override {
    return was_cancelled_ || (carried_ != nullptr && carried_->was_cancelled());
  }

 private:
  detail::MessageComparison& messages_;
  Operation operation_;
  bool is_compared_;  // a message of a rank to itself is not
  std::shared_ptr<detail::MessageComparison::Exchange> exchange_;
  std::unique_ptr<Pending> carried_;
  bool was_cancelled_ = false;
};

CheckedTransport::CheckedTransport(const mpi::CommunicatorView& comm, Options options,
                                   detail::GroupMembers members, ShmTransport* shared)
    : options_{options},
      mpi_{comm, options.largest_count},
      shared_{shared},
      messages_{comm, members} {
  if (shared != nullptr)
    inside_ = std::make_unique<ComparedTransport>(comm, options.largest_count, *shared);
  else
    exchange_ = std::make_unique<detail::CallExchange>(comm, std::move(members));
}

void CheckedTransport::run(const Call& call, Waiter& waiter) {
  mpi::require_not_finalised();
  if (is_point_to_point(call.operation)) return run_message(call, waiter);
  run_collective(call, waiter);
}

void CheckedTransport::run_message(const Call& call, Waiter& waiter) {
  detail::RecordedCall recorded = detail::record_call(waiter, call, 0, carrier());
  const auto exchange = messages_.begin(call, {});
  try {
    wait_for(messages_, *exchange, call, 0, waiter);
  } catch (...) {
    messages_.forget(*exchange);
    throw;
  }
  // This rank must not block inside MPI. The other end may first need another message of this rank,
  // and that message makes progress only in calls of rankmesh.
  recorded.enter();
  waiter.finish(call, 0, mpi_.start(call));
  recorded.end();
}

void CheckedTransport::run_collective(const Call& call, Waiter& waiter) {
  if (inside_ != nullptr) {
    if (!options_.has_deadline) return inside_->run(call, waiter);
    detail::RecordedCall recorded =
        detail::record_call(waiter, call, shared_->calls() + 1, carrier());
    auto pending = inside_->start_to_wait(call);
    waiter.finish(call, shared_->calls(), std::move(pending));
    return recorded.end();
  }
  mpi_.validate(call);
  detail::RecordedCall recorded =
      detail::record_call(waiter, call, exchange_->calls() + 1, carrier());
  bool any_is_async = false;
  const auto comparison = exchange_->begin(
      call, options_.has_deadline, [&any_is_async](bool is_async) { any_is_async = is_async; });
  try {
    wait_for(*exchange_, *comparison, call, exchange_->calls(), waiter);
  } catch (...) {
    exchange_->end(std::current_exception());  // `any_is_async` goes out of scope
    throw;
  }
  mpi_.set_calls(exchange_->calls() - 1);  // it counts this call itself
  // All members have reached the call, so MPI may block.
  if (!any_is_async) return run_in_mpi(call, waiter, recorded);
  recorded.enter();
  waiter.finish(call, exchange_->calls(), mpi_.start(call));
  recorded.end();
}

// Ends the group on this member if MPI fails.
void CheckedTransport::run_in_mpi(const Call& call, Waiter& waiter,
                                  detail::RecordedCall& recorded) {
  try {
    mpi_.run_recorded(call, waiter, recorded);
  } catch (const UsageError&) {
    throw;  // a function of the program threw: the operation is complete
  } catch (...) {
    exchange_->end(std::current_exception());
    throw;
  }
}

std::unique_ptr<Pending> CheckedTransport::start(const Call& call) {
  mpi::require_not_finalised();
  if (is_point_to_point(call.operation))
    return std::make_unique<PendingMessage>(call, messages_, &mpi_);
  if (inside_ != nullptr) return inside_->start(call);
  mpi_.validate(call);
  return std::make_unique<PendingCollective>(call, *exchange_, &mpi_);
}

std::unique_ptr<Pending> CheckedTransport::start_comparison(const Call& call) {
  if (is_point_to_point(call.operation))
    return std::make_unique<PendingMessage>(call, messages_, nullptr);
  if (inside_ != nullptr) return inside_->start_comparison(call);
  return std::make_unique<PendingCollective>(call, *exchange_, nullptr);
}

// With shared memory, the group's transport in shared memory does the same.

void CheckedTransport::leave(std::string_view why) {
  messages_.set_leaving(true);
  if (exchange_ != nullptr) exchange_->leave(why);
}

bool CheckedTransport::have_all_left() {
  return exchange_ == nullptr || exchange_->have_all_left();
}

void CheckedTransport::stay() {
  messages_.set_leaving(false);
  if (exchange_ != nullptr) exchange_->stay();
}

void CheckedTransport::give_up(const Error& why) {
  messages_.end(std::make_exception_ptr(why));
  if (exchange_ != nullptr) exchange_->end(std::make_exception_ptr(why));
}

void CheckedTransport::throw_if_ended() {
  if (exchange_ != nullptr) exchange_->throw_if_ended();
}

void CheckedTransport::compare_at_close() {
  messages_.advance();  // takes the headers of receives that others have cancelled
  if (exchange_ != nullptr) exchange_->compare_at_close();
}

}  // namespace rankmesh

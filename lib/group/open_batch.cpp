// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_batch.hpp"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::detail {
namespace {

// Keeps the first failure of several steps, all of which must run.
class FirstFailure {
 public:
  template <class Step>
  bool guard(Step&& step) {
    try {
      step();
      return true;
    } catch (const LostRanks&) {
      keep(true);
    } catch (...) {  // also an exception of a transport of the program
      keep(false);
    }
    return false;
  }
  [[nodiscard]] bool happened() const { return failure_ != nullptr; }
  [[nodiscard]] const std::string& message() const { return message_; }
  [[nodiscard]] bool is_of_loss() const { return is_of_loss_; }  // every member finds it
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  void keep(bool is_of_loss) {
    if (failure_ != nullptr) return;
    failure_ = std::current_exception();
    message_ = current_reasons().message;
    if (message_.empty()) message_ = "an exception without a text";
    is_of_loss_ = is_of_loss;
  }

  std::exception_ptr failure_;
  std::string message_;
  bool is_of_loss_ = false;
};

// Compares the calls on device memory with the calls of the other members. All comparisons are
// started before the function waits for the first one, because members may send messages to each
// other.
void compare(const std::vector<DeferredCall>& calls) {
  std::vector<std::pair<CallDispatcher*, CallDispatcher::Comparison>> comparisons;
  for (const DeferredCall& call : calls)
    if (call.operation() == nullptr)
      comparisons.emplace_back(&call.dispatcher(), call.dispatcher().start_comparison(call.call()));
  for (const auto& [dispatcher, comparison] : comparisons) dispatcher->finish(comparison);
}

// Members of the group may have issued the call, which this rank has not, and would match it with a
// later one.
void break_group(const DeferredCall& call, const FirstFailure& failure) {
  Connection& connection = call.dispatcher().connection();
  if (failure.is_of_loss() || !connection.is_usable()) return;
  connection.mark_broken(Error{fmt::format(
      "a batch did not issue {}, because another call of it failed: {}",
      to_string(describe_completely(call.call()), call.dispatcher().name()), failure.message())});
}

// Issues the device calls of a batch, which are sorted by priority. Inside a group, NCCL may issue
// the operations in any order. Therefore each priority has a group of its own.
class IssuedTogether {
 public:
  // @param device  NCCL's group, which is open; null if the mesh has no devices.
  IssuedTogether(DeviceBatch* device, const Deadline& deadline)
      : device_{device}, is_open_{device != nullptr}, deadline_{deadline} {}

  void issue(const DeferredCall& call) {
    if (priority_ && *priority_ != call.place().priority) {
      end();
      device_->begin();
      is_open_ = true;
    }
    priority_ = call.place().priority;
    recorded_.emplace_back(&call, call.dispatcher().issue(call));
  }

  // Ends the group that is open, if there is one.
  void end() {
    if (!std::exchange(is_open_, false)) return;
    auto recorded = std::exchange(recorded_, {});
    try {
      device_->end(deadline_);
    } catch (const Error& error) {
      for (auto& [call, record] : recorded)
        if (Connection& taken = call->dispatcher().connection(); taken.size() > 1)
          taken.mark_broken(error);
      throw;
    }
    for (auto& [call, record] : recorded)
      call->dispatcher().follow(std::move(record), call->call().stream, call->call().operation);
  }

 private:
  DeviceBatch* device_;
  bool is_open_;
  const Deadline& deadline_;
  std::optional<int> priority_;
  std::vector<std::pair<const DeferredCall*, RecordedCall>> recorded_;  // of the group that is open
};

}  // namespace

DeferredCall::DeferredCall(const Call& call, CallDispatcher& dispatcher, BatchPlace place,
                           std::shared_ptr<AsyncOperation> operation)
    : kept_{std::make_unique<KeptCall>(call)},
      dispatcher_{&dispatcher},
      place_{place},
      operation_{std::move(operation)} {}

void OpenBatch::begin() {
  if (is_open_)
    throw UsageError{"an NcclGroup is already open on this mesh",
                     "end the first group before the second begins"};
  if (device_ != nullptr) device_->begin();
  is_open_ = true;
  reasons_.add();
}

void OpenBatch::reserve_memory(const Call& call, const CallDispatcher& dispatcher) {
  const Reserved mine{describe_completely(call), &dispatcher};
  const MemoryUse use{call, dispatcher.self(), dispatcher.size()};
  if (const auto other = memory_.add(use, reserved_.size())) {
    const Reserved& theirs = reserved_[*other];
    throw UsageError{
        fmt::format("{} and {} share memory in one NcclGroup, and at least one of them writes it",
                    to_string(theirs.call, theirs.dispatcher->name()),
                    to_string(mine.call, dispatcher.name())),
        "the operations of an NcclGroup have no order: use separate memory, or end the group "
        "between them"};
  }
  reserved_.push_back(mine);
}

std::uint64_t OpenBatch::calls_of(const Connection& connection) const {
  return static_cast<std::uint64_t>(std::ranges::count_if(deferred_, [&](const DeferredCall& call) {
    return call.operation() != nullptr && !is_point_to_point(call.call().operation) &&
           &call.dispatcher().connection() == &connection;
  }));
}

void OpenBatch::forget_memory() {
  memory_.clear();
  reserved_.clear();
}

void OpenBatch::end(const Deadline& deadline) {
  is_open_ = false;
  reasons_.remove();
  forget_memory();
  issue(std::exchange(deferred_, {}), deadline);
}

void OpenBatch::issue_together(std::vector<DeferredCall> calls, const Deadline& deadline) {
  device_->begin();
  issue(std::move(calls), deadline);
}

void OpenBatch::issue(std::vector<DeferredCall> calls, const Deadline& deadline) {
  std::ranges::stable_sort(calls, {}, &DeferredCall::place);
  FirstFailure failure;
  failure.guard([&] { compare(calls); });
  IssuedTogether together{device_.get(), deadline};
  const Connection* failed = nullptr;
  std::vector<const DeferredCall*> left_out;  // of groups other than that of the call that failed
  for (const DeferredCall& call : calls) {
    const Connection& connection = call.dispatcher().connection();
    const auto issue_one = [&] {
      if (call.operation() == nullptr)
        together.issue(call);
      else
        (void)call.dispatcher().issue(call);
    };
    if (!failure.happened()) {
      if (failure.guard(issue_one)) continue;
      failed = &connection;
    }
    if (call.operation() != nullptr) call.operation()->failure = failure.message();
    if (&connection != failed && connection.size() > 1) left_out.push_back(&call);
  }
  // Even after a failure above, this thread is inside NCCL's group and must leave it.
  failure.guard([&] { together.end(); });
  for (const DeferredCall* const call : left_out)
    failure.guard([&] { break_group(*call, failure); });
  failure.rethrow();
}

void OpenBatch::abandon(const std::string& why, bool uses_devices) noexcept {
  if (std::exchange(is_open_, false)) {
    reasons_.remove();
    try {  // nothing was issued, but this thread must leave NCCL's group
      if (uses_devices && device_ != nullptr) device_->end(Deadline{Deadline::Duration{0}});
    } catch (const std::exception&) {
    }
  }
  for (const DeferredCall& call : deferred_)
    if (call.operation() != nullptr) call.operation()->failure = why;
  deferred_.clear();
  forget_memory();
}

}  // namespace rankmesh::detail

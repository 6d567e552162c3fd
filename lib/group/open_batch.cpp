// SPDX-License-Identifier: BSD-3-Clause
#include "detail/open_batch.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "detail/call_dispatcher.hpp"
#include "rankmesh/base/error.hpp"

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
    } catch (const Error& error) {
      if (failure_ == nullptr) {
        failure_ = std::current_exception();
        message_ = error.message();
      }
      return false;
    }
  }
  [[nodiscard]] bool happened() const { return failure_ != nullptr; }
  [[nodiscard]] const std::string& message() const { return message_; }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  std::exception_ptr failure_;
  std::string message_;
};

// Compares the calls on device memory with those of the other members. All comparisons are started
// before the first is waited for, because members may send messages to each other.
void compare(const std::vector<DeferredCall>& calls) {
  std::vector<std::pair<CallDispatcher*, CallDispatcher::Comparison>> comparisons;
  for (const DeferredCall& call : calls)
    if (call.operation() == nullptr)
      comparisons.emplace_back(&call.dispatcher(), call.dispatcher().start_comparison(call.call()));
  for (const auto& [dispatcher, comparison] : comparisons) dispatcher->finish(comparison);
}

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

void OpenBatch::end(const Deadline& deadline) {
  is_open_ = false;
  reasons_.remove();
  std::vector<DeferredCall> calls = std::exchange(deferred_, {});
  std::ranges::stable_sort(calls, {}, &DeferredCall::place);
  FirstFailure failure;
  failure.guard([&] { compare(calls); });
  std::vector<Connection*> in_batch;  // whose operations NCCL has taken
  std::vector<std::pair<const DeferredCall*, RecordedCall>> recorded;
  for (const DeferredCall& call : calls) {
    const bool is_issued = !failure.happened() && failure.guard([&] {
      RecordedCall record = call.dispatcher().issue(call);
      if (call.operation() == nullptr) recorded.emplace_back(&call, std::move(record));
    });
    Connection& connection = call.dispatcher().connection();
    if (is_issued && call.operation() == nullptr && connection.size() > 1)
      in_batch.push_back(&connection);
    if (!is_issued && call.operation() != nullptr) call.operation()->failure = failure.message();
  }
  if (device_ != nullptr) {
    // Even after a failure above, this thread is inside NCCL's group and must leave it.
    failure.guard([&] {
      try {
        device_->end(deadline);
      } catch (const Error& error) {
        for (Connection* connection : in_batch) connection->mark_broken(error);
        throw;
      }
      for (auto& [call, record] : recorded)
        call->dispatcher().follow(std::move(record), call->call().stream);
    });
  }
  failure.rethrow();
}

void OpenBatch::abandon(const std::string& why) noexcept {
  for (const DeferredCall& call : deferred_)
    if (call.operation() != nullptr) call.operation()->failure = why;
  deferred_.clear();
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/work.hpp"

#include "detail/mesh_runtime.hpp"

namespace rankmesh {

using detail::finding_losses;

bool Work::test() {
  if (test_alone()) return true;
  const auto operation = operation_;  // a function of the program may end this Work meanwhile
  const detail::Attended attended{*operation};
  detail::advance_between_tests();
  return false;
}

bool Work::test_alone() {
  if (operation_ == nullptr) return true;
  const auto runtime = runtime_;  // it must outlive the lock
  const detail::CallLock lock{*runtime};
  runtime->in_flight.continue_in_this_thread();
  if (!finding_losses(*runtime, [&] { return runtime->in_flight.test(*operation_); })) return false;
  operation_.reset();
  runtime_.reset();
  return true;
}

void Work::wait() {
  if (operation_ == nullptr) return;
  const auto runtime = runtime_;  // both must outlive the lock
  const auto operation = operation_;
  const detail::CallLock lock{*runtime};
  finding_losses(*runtime, [&] {
    if (operation->is_on_device && operation->pending != nullptr && operation->failure.empty())
      return operation->pending->order_before(operation->stream);
    const auto limit = runtime->wait_limit(operation->connection->group.timeout);
    runtime->in_flight.wait(*operation, runtime->control->monitor, limit.deadline, limit.option);
  });
}

void Work::wait(Deadline::Duration timeout) {
  if (operation_ == nullptr) return;
  const auto runtime = runtime_;  // both must outlive the lock
  const auto operation = operation_;
  const detail::CallLock lock{*runtime};
  finding_losses(*runtime, [&] {
    runtime->in_flight.wait(*operation, runtime->control->monitor, Deadline{timeout},
                            TimeLimit::argument);
  });
  operation_.reset();
  runtime_.reset();
}

bool Work::cancel() {
  if (operation_ == nullptr) return false;
  const auto runtime = runtime_;  // both must outlive the lock
  const auto operation = operation_;
  const detail::CallLock lock{*runtime};
  const bool was_cancelled = runtime->in_flight.cancel(
      *operation, runtime->control->monitor, Deadline{operation->connection->group.timeout});
  operation_.reset();
  runtime_.reset();
  return was_cancelled;
}

}  // namespace rankmesh

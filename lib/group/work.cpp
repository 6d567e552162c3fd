// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/group/work.hpp"

#include "base/detail/copy_of_error.hpp"
#include "detail/mesh_runtime.hpp"
#include "rankmesh/base/error.hpp"
#include "transport/detail/call_errors.hpp"

namespace rankmesh {

namespace {

// Runs an action on an operation, and reports losses. Both objects outlive the lock of the mesh.
template <class Action>
auto locked(std::shared_ptr<detail::MeshRuntime> runtime,
            std::shared_ptr<detail::AsyncOperation> operation, Action&& action) {
  const detail::CallLock lock{*runtime};
  return detail::finding_losses(*runtime, [&] { return action(*runtime, *operation); });
}

// Tests an operation. If it fails, the other members learn the reason, as in a wait.
bool test_and_tell(detail::MeshRuntime& runtime, detail::AsyncOperation& operation) {
  runtime.in_flight.continue_in_this_thread();
  try {
    return runtime.in_flight.test(operation);
  } catch (const detail::FailedReduction& error) {
    runtime.control->monitor.give_up(operation.point(), error.message());
    throw;
  } catch (const UsageError&) {
    throw;  // the operation is complete, or has failed before
  } catch (const detail::UntoldMismatch& error) {
    runtime.control->monitor.give_up(operation.point(), error);
    throw;
  } catch (const MismatchError&) {
    throw;  // the other members find it themselves
  } catch (const LostRanks&) {
    throw;
  } catch (const Error& error) {
    runtime.throw_if_result_of_loss(error);
    if (!operation.is_on_device) runtime.control->monitor.give_up(operation.point(), error);
    throw;
  }
}

}  // namespace

bool Work::test() {
  if (test_alone()) return true;
  const auto operation = operation_;  // a function of the program may end this Work meanwhile
  const detail::Attended attended{*operation};
  detail::advance_between_tests();
  return false;
}

bool Work::test_alone() {
  if (operation_ == nullptr) return true;
  const bool is_complete = locked(runtime_, operation_, test_and_tell);
  if (is_complete) *this = {};
  return is_complete;
}

void Work::wait() {
  if (operation_ == nullptr) return;
  locked(runtime_, operation_, [](detail::MeshRuntime& runtime, auto& operation) {
    if (operation.is_on_device && operation.pending != nullptr && operation.failure.empty())
      return operation.pending->order_before(operation.stream);
    const auto limit = runtime.wait_limit(operation.connection->group.timeout);
    runtime.in_flight.wait(operation, runtime.control->monitor, limit.deadline, limit.option);
  });
}

void Work::wait(Deadline::Duration timeout) {
  if (operation_ == nullptr) return;
  locked(runtime_, operation_, [&](detail::MeshRuntime& runtime, auto& operation) {
    runtime.in_flight.wait(operation, runtime.control->monitor, Deadline{timeout},
                           TimeLimit::argument);
  });
  *this = {};
}

bool Work::cancel() {
  if (operation_ == nullptr) return false;
  const bool was_cancelled =
      locked(runtime_, operation_, [](detail::MeshRuntime& runtime, auto& operation) {
        return runtime.in_flight.cancel(operation, runtime.control->monitor,
                                        Deadline{operation.connection->group.timeout});
      });
  *this = {};
  return was_cancelled;
}

}  // namespace rankmesh

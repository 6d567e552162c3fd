#include "detail/operations_in_flight.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

// MPI may still write to the memory of an operation that was given up, so it is never freed.
void leak(AsyncOperation& operation) {
  (void)operation.pending.release();                           // NOLINT
  (void)new std::shared_ptr<void>{std::move(operation.kept)};  // NOLINT
}

}  // namespace

void OperationsInFlight::add(std::shared_ptr<AsyncOperation> operation) {
  if (operation->is_polled()) reasons_.add();
  list_.push_back(std::move(operation));
}

void OperationsInFlight::forget(const AsyncOperation& operation) {
  const auto removed =
      std::erase_if(list_, [&](const auto& other) { return other.get() == &operation; });
  if (removed != 0 && operation.is_polled()) reasons_.remove();
}

void OperationsInFlight::fail(AsyncOperation& operation, const std::string& why) {
  operation.failure = why;
  operation.connection->mark_broken(why);
  leak(operation);
  forget(operation);
}

bool OperationsInFlight::test(AsyncOperation& operation) {
  if (!operation.failure.empty())
    throw ClosedError{operation.failure, "the operation failed earlier and will never be complete"};
  if (operation.is_deferred) return false;
  if (operation.pending == nullptr) return true;
  const auto end = [&] {
    operation.pending.reset();
    operation.kept.reset();
    forget(operation);
  };
  try {
    if (!operation.pending->test()) return false;
  } catch (const UsageError&) {
    end();  // a message of another length: the operation is complete
    throw;
  } catch (const Error& error) {
    fail(operation, error.message());
    throw;
  }
  end();
  return true;
}

void OperationsInFlight::wait(AsyncOperation& operation, WaitMonitor& monitor,
                              const Deadline& deadline) {
  if (operation.is_deferred && operation.failure.empty())
    throw UsageError{fmt::format("{}: waited for inside its NcclGroup", operation.point.activity),
                     "end the group first: none of its operations has been issued"};
  try {
    monitor.wait(
        [&] {
          if (test(operation)) return true;
          // A peer may wait for another operation of this rank before it comes to this one.
          advance_polled();
          return false;
        },
        operation.point, deadline);
  } catch (const TimeoutError& error) {
    fail(operation, error.message());
    throw;
  }
}

void OperationsInFlight::progress() {
  for (const auto& operation : std::vector{list_}) {  // a copy: operations that end leave the list
    try {
      (void)test(*operation);
    } catch (const Error& error) {
      operation->failure = error.message();
    }
  }
}

void OperationsInFlight::advance_polled() {
  for (const auto& operation : list_)
    if (operation->is_polled()) operation->transport->advance();
}

void OperationsInFlight::finish(const Connection* only, WaitMonitor& monitor,
                                const Deadline& deadline) {
  for (const auto& operation : std::vector{list_})
    if (only == nullptr || operation->connection.get() == only) wait(*operation, monitor, deadline);
}

void OperationsInFlight::finish_polled(WaitMonitor& monitor) {
  for (const auto& operation : std::vector{list_})
    if (operation->is_polled())
      wait(*operation, monitor, Deadline{operation->connection->group.timeout});
}

void OperationsInFlight::abandon() noexcept {
  for (const auto& operation : list_) {
    operation->failure = "the mesh is gone";
    if (!operation->is_on_device) leak(*operation);
  }
  list_.clear();
}

}  // namespace rankmesh::detail

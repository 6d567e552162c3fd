// SPDX-License-Identifier: BSD-3-Clause
#include "detail/operations_in_flight.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/detail/patience.hpp"
#include "detail/everything_in_flight.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/detail/call_errors.hpp"
#include "transport/detail/local_transport.hpp"
#include "wait/detail/few_polls.hpp"

namespace rankmesh::detail {
namespace {

// Leaks an abandoned operation, because MPI may still write to its memory.
void leak_memory(AsyncOperation& operation) {
  if (operation.pending != nullptr && operation.sequence != nullptr) operation.sequence->give_up();
  if (operation.pending != nullptr && operation.pending->is_in_mpi())
    mpi::record_abandoned(operation.point().activity);
  leak(operation.pending);
  leak(operation.kept);
}

// Returns the members for which a sequence waits, as ranks of the mesh.
std::vector<int> ranks_of(const MessageSequence& sequence, const Connection& connection) {
  std::vector<int> ranks;
  for (const RankInGroup member : sequence.unfinished())
    ranks.push_back(static_cast<int>(connection.group.ranks.at(member.value()).value()));
  return ranks;
}

bool can_be_cancelled(const AsyncOperation& operation) {
  return operation.is_receive && !operation.is_deferred;
}

// The operations of a mesh that are tested between two polls of a wait, or by one test().
constexpr std::size_t most_at_once = 4;

// Of all meshes.
std::atomic<std::int64_t> in_flight_of_process{0};

}  // namespace

void AsyncOperation::recount() {
  const bool counts = is_listed && !is_attended && !is_on_device;
  if (counts == is_counted) return;
  is_counted = counts;
  EverythingInFlight::instance().count(counts ? 1 : -1);
}

std::int64_t OperationsInFlight::count_of_process() { return in_flight_of_process; }

void OperationsInFlight::add(std::shared_ptr<AsyncOperation> operation) {
  continue_in_this_thread();
  if (operation->is_polled) {
    ++polled_;
    EverythingInFlight::instance().begin_polled();
  }
  if (operation->is_on_device) forget_ended_on_device();
  ++in_flight_of_process;
  operation->is_listed = true;
  operation->recount();
  list_.push_back(std::move(operation));
}

void OperationsInFlight::add_captured(AsyncOperation& operation) {
  operation.is_captured = true;
  operation.recorded.capture();
  if (operation.kept != nullptr) kept_for_graphs_.push_back(std::move(operation.kept));
}

// Two at each new operation, so that a program whose streams wait for its operations, and never its
// host, does not collect events.
void OperationsInFlight::forget_ended_on_device() {
  for (int looks = 0; looks < 2; ++looks) {
    const auto oldest = std::ranges::find_if(
        list_, [](const auto& o) { return o->is_on_device && o->unseen == nullptr; });
    if (oldest == list_.end() || !look(std::shared_ptr{*oldest})) return;
  }
}

bool OperationsInFlight::look(const std::shared_ptr<AsyncOperation>& operation) {
  if (operation->unseen != nullptr) return false;
  try {
    return test(*operation);
  } catch (const Error& error) {
    operation->failure = error.message();
    operation->unseen = std::current_exception();
    // Its Work may be gone. Then close() throws the failure.
    std::erase_if(failed_, [](const auto& earlier) { return earlier->unseen == nullptr; });
    failed_.push_back(operation);
    return false;
  }
}

void OperationsInFlight::forget(AsyncOperation& operation) {
  if (!operation.is_listed) return;
  end(operation);
  std::erase_if(list_, [&](const auto& other) { return other.get() == &operation; });
}

// Counts an operation no longer, which is about to be removed from the list.
void OperationsInFlight::end(AsyncOperation& operation) {
  operation.is_listed = false;
  operation.recount();
  --in_flight_of_process;
  if (!operation.is_polled) return;
  --polled_;
  EverythingInFlight::instance().end_polled();
}

void OperationsInFlight::fail(AsyncOperation& operation, const Error& why) {
  operation.failure = why.message();
  operation.recorded = {};
  operation.connection->mark_broken(why);
  leak_memory(operation);
  forget(operation);
}

bool OperationsInFlight::test(AsyncOperation& operation) {
  if (operation.unseen != nullptr) std::rethrow_exception(std::exchange(operation.unseen, nullptr));
  if (!operation.failure.empty()) throw ClosedError{operation.failure, operation.remedy};
  if (operation.is_deferred) return false;
  if (operation.pending == nullptr || operation.is_captured) return true;
  const auto end = [&] {
    operation.was_cancelled = operation.pending->was_cancelled();
    if (operation.was_cancelled) {
      operation.recorded.cancel();
      operation.connection->messages.cancel(operation.source, operation.tag);
    } else {
      operation.recorded.end();
    }
    operation.pending.reset();
    if (operation.finish) std::exchange(operation.finish, {})();
    operation.kept.reset();
    forget(operation);
  };
  try {
    const InFunction mark;
    if (!operation.pending->test()) return false;
  } catch (const FailedReduction& error) {
    operation.connection->mark_broken(error);
    end();
    throw;
  } catch (const WrongLength& error) {
    end();
    error.throw_in(operation.point().activity);
  } catch (const UsageError&) {
    end();
    throw;
  } catch (const Error& error) {
    fail(operation, error);
    throw;
  } catch (...) {
    const Reasons reasons = current_reasons();
    const Error error{
        fmt::format("{} ended by an exception: {}", operation.point().activity, reasons.message),
        reasons.hint};
    fail(operation, error);
    std::throw_with_nested(Error{error});
  }
  end();
  return true;
}

void OperationsInFlight::wait(AsyncOperation& operation, WaitMonitor& monitor,
                              const Deadline& deadline, TimeLimit limit) {
  if (operation.is_deferred && operation.failure.empty())
    throw UsageError{
        fmt::format("{} is waited for inside its NcclGroup", operation.point().activity),
        "end the NcclGroup first: its operations have not been issued"};
  continue_in_this_thread();
  const Attended attended{operation};
  bool is_complete = false;
  std::exception_ptr early;  // the wait throws it, because it tells the other members
  try {
    mpi::require_not_finalised();
    FewPolls few{operation.connection->group.has_own_cores};
    do {
      is_complete = test(operation);
      if (!is_complete) advance();  // MPI begins an operation only when it is tested
    } while (!is_complete && few.next());
  } catch (...) {
    early = std::current_exception();
  }
  if (is_complete) return;
  // Nobody else can send the message, and a send would have completed the receive.
  if (early == nullptr && operation.is_from_itself) throw never_sent(operation.point().activity);
  WaitPoint point = operation.point();
  point.limit = limit;
  point.needed = operation.connection->needed(
      [&] {
        return operation.pending == nullptr ? std::vector<std::int64_t>{}
                                            : operation.pending->awaited();
      },
      1);
  std::size_t finished = 0;
  const auto look = [&] {
    if (early != nullptr) std::rethrow_exception(early);
    is_complete = test(operation);
    if (is_complete) return true;
    // Members that have done their part may leave rankmesh. The wait continues for the other
    // members.
    return operation.sequence != nullptr && operation.sequence->finished() != finished;
  };
  try {
    while (!is_complete) {
      if (operation.sequence != nullptr && operation.pending != nullptr) {
        finished = operation.sequence->finished();
        point.members = ranks_of(*operation.sequence, *operation.connection);
      }
      monitor.wait(look, point, deadline);
    }
  } catch (const FailedReduction& error) {
    monitor.give_up(point, error.message());
    throw;
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    if (operation.failure.empty()) fail(operation, error);
    throw;
  }
}

bool OperationsInFlight::cancel(AsyncOperation& operation, WaitMonitor& monitor,
                                const Deadline& deadline) {
  const auto refuse = [&](std::string_view why, const char* hint) {
    throw UsageError{fmt::format("{} cannot be cancelled: {}", operation.point().activity, why),
                     hint};
  };
  if (!operation.is_receive)
    refuse("only a receive on host memory can be", "wait for the operation, or close the mesh");
  if (operation.is_deferred && operation.failure.empty())
    refuse("its NcclGroup has not ended", "end the NcclGroup first");
  if (test(operation)) return operation.was_cancelled;
  operation.pending->cancel();
  wait(operation, monitor, deadline);
  return operation.was_cancelled;
}

void OperationsInFlight::progress() {
  // A copy, because operations that end are removed from the list.
  for (const auto& operation : std::vector{list_}) (void)look(operation);
}

// Operations that end are removed from the list.
void OperationsInFlight::advance() {
  for (std::size_t left = std::min(most_at_once, list_.size()); left > 0 && !list_.empty();
       --left) {
    if (++next_ >= list_.size()) next_ = 0;
    const std::shared_ptr<AsyncOperation> operation = list_[next_];
    const bool may_enter = !operation->calls_program || !InFunction::is_entered();
    if (operation->is_counted && may_enter) (void)look(operation);
  }
}

void OperationsInFlight::finish(const Connection* only, WaitMonitor& monitor,
                                const Deadline& deadline) {
  for (const auto& operation : std::vector{list_}) {
    if (only != nullptr && operation->connection.get() != only) continue;
    if (can_be_cancelled(*operation))
      (void)test(*operation);
    else
      wait(*operation, monitor, deadline);
  }
  // The other members of a group would wait for one that throws before all have come.
  if (only == nullptr) throw_unseen(nullptr);
}

void OperationsInFlight::throw_unseen(const Connection* only) {
  for (const auto& operation : failed_)
    if (operation->unseen != nullptr && (only == nullptr || operation->connection.get() == only))
      std::rethrow_exception(std::exchange(operation->unseen, nullptr));
}

void OperationsInFlight::end_receives(const Connection* only, WaitMonitor& monitor,
                                      const Deadline& deadline, bool messages_differ) {
  auto receives = list_;
  std::erase_if(receives, [&](const auto& operation) {
    return !can_be_cancelled(*operation) ||
           (only != nullptr && operation->connection.get() != only);
  });
  if (receives.empty()) return throw_unseen(only);
  std::exception_ptr failure;  // the first one
  const auto has_ended = [&](auto&& action) {
    try {
      return action();
    } catch (const Error&) {
      if (failure == nullptr) failure = std::current_exception();
      return true;
    }
  };
  // Messages that are on their way still arrive. Their senders have already sent them, so only the
  // network delays them.
  const auto wait_unless = [&](auto&& may_end, const Deadline& end) {
    (void)poll_until(
        [&] {
          std::erase_if(receives, [&](const auto& operation) {
            return has_ended([&] { return test(*operation); });
          });
          return std::ranges::all_of(receives, may_end);
        },
        end);
  };
  // The messages of adopted groups are not compared. The wait is limited, because calls that were
  // refused later are counted, too.
  if (!messages_differ)
    wait_unless([](const auto& operation) { return operation->connection->group.is_adopted; },
                Deadline{patience().counted});
  wait_unless([](const auto&) { return false; }, Deadline{patience().on_the_way});
  for (const auto& operation : receives) {
    const std::string activity = operation->point().activity;
    (void)has_ended([&] {
      if (!cancel(*operation, monitor, deadline)) return true;
      operation->failure =
          fmt::format("{} was cancelled by close(), because no message had come", activity);
      operation->remedy = "wait for receives before close(), or cancel them with Work::cancel()";
      return true;
    });
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  throw_unseen(only);
}

void OperationsInFlight::finish_polled(WaitMonitor& monitor) {
  for (const auto& operation : std::vector{list_})
    if (operation->is_polled && !operation->is_message)
      wait(*operation, monitor, Deadline{operation->connection->group.timeout});
}

bool OperationsInFlight::has_polled_messages() const {
  return std::ranges::any_of(list_, [](const auto& o) { return o->is_polled && o->is_message; });
}

void OperationsInFlight::advance_messages_beside_mpi() {
  for (const auto& operation : list_)
    if (operation->is_polled && operation->is_message) operation->pending->advance_beside_mpi();
}

void OperationsInFlight::abort_on_device(const std::string& why, const Connection* only) {
  for (const auto& operation : std::vector{list_}) {
    if (!operation->is_on_device) continue;
    if (only != nullptr && operation->connection.get() != only) continue;
    operation->failure = why;
    forget(*operation);
  }
}

void OperationsInFlight::abandon() noexcept {
  for (const auto& operation : list_) {
    operation->failure = "the mesh is gone";
    if (!operation->is_on_device) leak_memory(*operation);
    end(*operation);
  }
  list_.clear();
  failed_.clear();
}

}  // namespace rankmesh::detail

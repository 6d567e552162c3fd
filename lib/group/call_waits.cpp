// SPDX-License-Identifier: BSD-3-Clause
// How a call waits for its operation: polls that name the missing members, and what a failed wait
// means for the group.
#include "detail/call_dispatcher.hpp"

#include <utility>

#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "transport/detail/call_errors.hpp"
#include "wait/detail/few_polls.hpp"

namespace rankmesh::detail {

// Waits. If the wait fails, marks the group as broken, because the other members may wait for ever.
template <class Wait>
void CallDispatcher::breaking_group(Wait&& wait) {
  try {
    wait();
  } catch (const UsageError&) {
    throw;  // of an operation that is complete
  } catch (const LostRanks& error) {
    connection_->mark_broken(error);
    throw;
  } catch (const Error& error) {
    runtime_->throw_if_result_of_loss(error);
    connection_->mark_broken(error);
    throw;
  } catch (...) {
    connection_->mark_broken(
        Error{"an operation ended by an exception: " + current_reasons().message});
    throw;
  }
}

void CallDispatcher::run_polled(const Call& call) {
  const std::uint64_t number = next_number(call);
  RoutedTransport& transport = transport_for(call);
  RecordedCall recorded = record(call, number, transport, 0);
  finish(call, number, transport.start(call));
  recorded.end();
}

void CallDispatcher::finish(const Call& call, std::uint64_t number,
                            std::unique_ptr<Pending> pending) {
  try {
    breaking_group([&] {
      FewPolls few{connection_->group.has_own_cores};
      do {
        if (pending->test()) return;
      } while (few.next());
      WaitPoint point = point_of(call, number);
      point.needed = connection_->needed([&] { return pending->awaited(); }, 0);
      poll(std::move(point), [&] { return pending->test(); });
    });
  } catch (const WrongLength& error) {
    error.throw_in(point_of(call, number).activity);  // the operation is complete
  } catch (const UsageError&) {
    throw;  // a function of the program threw: the operation is complete
  } catch (...) {
    // MPI may still use the memory of an operation that has failed, so the operation is leaked.
    if (pending->is_in_mpi()) mpi::record_abandoned(point_of(call, number).activity);
    leak(pending);
    throw;
  }
}

void CallDispatcher::wait(const Call& call, std::uint64_t number, const std::function<bool()>& done,
                          const std::function<std::vector<std::int64_t>()>& awaited,
                          const std::function<bool()>& may_give_up) {
  WaitPoint point = point_of(call, number);
  point.may_give_up = may_give_up;
  if (awaited) point.needed = connection_->needed(awaited, 0);
  await(std::move(point), done);
}

void CallDispatcher::await(WaitPoint point, const std::function<bool()>& done) {
  breaking_group([&] { poll(std::move(point), done); });
}

// Polls until `done` returns true.
void CallDispatcher::poll(WaitPoint point, const std::function<bool()>& done) {
  const MeshRuntime::WaitLimit limit = runtime_->wait_limit(connection_->group.timeout);
  point.limit = limit.option;
  runtime_->control->monitor.wait(done, point, limit.deadline);
}

}  // namespace rankmesh::detail

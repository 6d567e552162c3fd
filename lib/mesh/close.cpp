// SPDX-License-Identifier: BSD-3-Clause
// Closes a mesh, or one group of it.
#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "detail/compare_messages.hpp"
#include "detail/state.hpp"
#include "mpi/detail/returned_errors.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mesh/mesh.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/backoff.hpp"
#include "rankmesh/wait/monitored_barrier.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh {
namespace {

// Runs a step of a close, and keeps the first failure: what is left is closed in any case.
template <class Step>
void keep_failure(std::exception_ptr& failure, Step&& step) {
  try {
    step();
  } catch (const Error&) {
    if (failure == nullptr) failure = std::current_exception();
  }
}

// A sum over all members, modulo 2^64.
class SumOfMembers {
 public:
  SumOfMembers(std::uint64_t number, const mpi::CommunicatorView& comm) : comm_{comm} {
    values_->own = number;
  }
  ~SumOfMembers() {
    if (request_ == MPI_REQUEST_NULL) return;
    values_.leak();  // MPI may still use it
    mpi::record_abandoned("the close of a group");
  }
  SumOfMembers(const SumOfMembers&) = delete;
  SumOfMembers& operator=(const SumOfMembers&) = delete;

  bool test() {
    if (!has_begun_)
      mpi::check(MPI_Iallreduce(&values_->own, &values_->all, 1, MPI_UINT64_T, MPI_SUM,
                                comm_.native(), &request_),
                 "MPI_Iallreduce");
    has_begun_ = true;
    int done = 0;
    const mpi::ReturnedErrors returned{MPI_COMM_WORLD};
    mpi::check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  [[nodiscard]] std::uint64_t result() const { return values_->all; }

 private:
  struct Values {
    std::uint64_t own, all;
  };
  MpiMemory<Values> values_;
  mpi::CommunicatorView comm_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool has_begun_ = false;
};

WaitPoint messages_point(const detail::ControlPlane& control) {
  return WaitPoint::of_all(control.comm().size(), "the comparison of messages at the close");
}

[[noreturn]] void throw_given_up(const detail::ControlPlane& control, std::size_t slot) {
  const detail::NodeBoard& board = control.board();
  // It publishes the reason right after it has given up.
  (void)poll_until([&] { return board.area(slot).presence == detail::Presence::failed; },
                   Deadline{std::chrono::seconds{1}});
  const auto reason = board.area(slot).reason.read();
  throw PeerError{fmt::format("rank {} gave up close(){}{}", control.names(board.ranks()[slot]),
                              reason ? ": " : "", reason ? reason->text : ""),
                  detail::peer_hint,
                  {board.ranks()[slot]}};
}

// Waits until all ranks close the mesh. Ranks that share a board meet there, and need the agreement
// only if one of them has failed. Returns whether their messages must be compared.
bool meet_at_close(detail::MeshState& state, bool has_failed, Agreement& agreement) {
  const std::string activity = "close of the mesh";
  detail::ControlPlane& control = *state.control;
  detail::NodeBoard& board = control.board();
  const auto ranks = static_cast<std::size_t>(control.comm().size());
  const std::uint64_t balance = detail::balance_of(state.connections, control.rank());
  if (board.members() == ranks) {
    WaitPoint point = WaitPoint::of_all(control.comm().size(), "the agreement before " + activity);
    point.may_give_up = [&] { return board.give_up_close(); };
    point.needed = [&] {
      return detail::OperationsInFlight::count_of_process() > 0 ? std::vector<int>{}
                                                                : board.not_closing();
    };
    board.begin_close(has_failed, balance);
    try {
      control.monitor.wait([&] { return board.all_close(); }, point, state.deadline());
    } catch (const LostRanks&) {
      // A rank that comes later must not count this one. If all have come, the close goes on.
      if (board.give_up_close()) throw;
    }
    if (const auto slot = board.who_gave_up_close()) {
      control.throw_if_newly_lost();
      throw_given_up(control, *slot);
    }
    if (!board.has_failed_to_close()) return board.balance_of_all() != 0;
  }
  if (balance != 0) agreement.ask();
  if (!control.all().agree(activity, agreement)) return false;
  SumOfMembers sum{balance, control.comm()};
  control.monitor.wait([&] { return sum.test(); }, messages_point(control), state.deadline());
  return sum.result() != 0;
}

// Aborts everything on the device. Returns `why`, and what was left behind. The transports stay,
// because operations in flight refer to their communicators.
std::string abort_devices(detail::MeshState& state, std::string why) {
  if (state.device)
    if (const std::string left_behind = state.device->abort(); !left_behind.empty())
      why += "; NCCL communicators were left behind: " + left_behind;
  state.runtime->device_calls.clear();  // afterwards: CUDA may wait for a thread that waits in CUDA
  state.runtime->in_flight.abort_on_device(why, nullptr);
  return why;
}

// Ends a group that cannot be closed. A barrier may still be in flight on it. The transport stays,
// as in abort_devices().
void break_group(detail::MeshState& state, detail::Connection& connection, const Error& error) {
  connection.mark_broken(error);  // other members learn it before the abort, which takes a while
  std::string left_behind;
  if (state.device) left_behind = state.device->abort(connection);
  if (!left_behind.empty())
    connection.mark_broken(
        Error{error.message() + "; NCCL communicators were left behind: " + left_behind});
  state.runtime->in_flight.abort_on_device(connection.why_unusable(), &connection);
}

// All members of a group wait for each other before anything is freed, so that no member's
// operation loses its communicator. Returns the sum of their balances, see balance_of().
std::uint64_t meet_at_close(detail::MeshState& state,
                            const std::shared_ptr<detail::Connection>& shared,
                            const GroupCoordinator& group) {
  detail::Connection& connection = *shared;
  detail::ControlPlane& control = *state.control;
  const std::uint64_t balance = detail::balance_of({&shared, 1}, control.rank());
  connection.guard().collectives->bring(balance);
  connection.guard().leave();
  const std::string activity = "close of " + group.name();
  // The identity is the same on all members; the name may differ.
  const std::string key = "close of " + connection.group.identity + group.ranks().to_string();
  WaitPoint point = WaitPoint::of(group.ranks(), activity, key);
  point.needed = connection.needed([&] { return connection.guard().collectives->not_left(); }, 0);
  const Deadline deadline = state.deadline();
  // Before all members have left, MPI could match the sum with a collective of the program.
  SumOfMembers sum{balance, connection.comm()};
  std::optional<std::uint64_t> known;
  const auto have_met = [&] {
    if (!connection.guard().have_all_left()) return false;
    known = connection.guard().collectives->brought_by_all();
    return known || sum.test();
  };
  control.monitor.wait(have_met, point, deadline);
  control.monitor.require_not_given_up(point);
  return known.value_or(sum.result());
}

// All ranks have closed a mesh that may survive, so a death concerns nobody. But NCCL reports it.
bool may_be_of_death(const detail::ControlPlane& control, const Error& error) {
  return control.losses != nullptr &&
         (dynamic_cast<const LibraryError*>(&error) != nullptr || mpi::has_companion_ended());
}

// A rank that does not come has often left because of a mistake that its groups know.
std::exception_ptr cause_of(const std::exception_ptr& failure, const detail::MeshState& state) {
  try {
    for (const auto& connection : state.connections) connection->guard().throw_if_ended();
  } catch (const Error&) {
    return std::current_exception();
  }
  return failure;
}

// Ends a mesh that cannot be closed, and throws why. Ranks that close it later learn it, too.
[[noreturn]] void end_close(detail::MeshState& state, const Error& error) {
  state.mark_closed();  // MPI_Finalize frees the communicators
  const std::exception_ptr cause = cause_of(std::current_exception(), state);
  state.control->leave_by_exception(error.message());
  // The program may wait for its streams next, and cannot call abort() any more.
  (void)abort_devices(state, "close() of the mesh has failed");
  std::rethrow_exception(cause);
}

// Looks whether a group has ended, and keeps the reason. A mesh may be closed nevertheless.
void look_at_groups(const detail::MeshState& state, std::exception_ptr& failure) {
  try {
    for (const auto& connection : state.connections) (void)connection->guard().have_all_left();
  } catch (const Error&) {
    if (failure == nullptr) failure = std::current_exception();
    throw;
  }
}

}  // namespace

void Mesh::close(const std::shared_ptr<GroupCoordinator>& group) {
  if (group == nullptr)
    throw UsageError{"close of a group that is null",
                     "new_groups() returns null for the groups that do not contain this rank"};
  close(*group);
}

void Mesh::close(GroupCoordinator& group) {
  detail::MeshState& state = open_state("close of a group");
  const detail::CallLock lock{*state.runtime};
  const auto found =
      std::ranges::find(state.dynamic, &group, &std::shared_ptr<GroupCoordinator>::get);
  detail::Connection& connection = detail::GroupAccess::connection(group);
  if (found == state.dynamic.end() && connection.group.families.empty() && connection.is_closed())
    throw ClosedError{fmt::format("close of '{}': the group is already closed", group.name()),
                      "close each group once"};
  if (found == state.dynamic.end())
    throw UsageError{fmt::format("'{}' is not a dynamic group of this mesh", group.name()),
                     "close the mesh itself to close all its groups"};
  if (state.device)
    if (const std::string graphs = state.device->living_graphs(&connection.group); !graphs.empty())
      throw UsageError{fmt::format("close of '{}': {}", group.name(), graphs),
                       "destroy the graphs first"};
  detail::ControlPlane& control = *state.control;
  state.runtime->in_flight.continue_in_this_thread();
  bool meets = false;
  std::uint64_t balance = 0;
  const std::shared_ptr<detail::Connection> shared =
      *std::ranges::find(state.connections, &connection, &std::shared_ptr<detail::Connection>::get);
  try {
    state.runtime->in_flight.finish(&connection, control.monitor, state.deadline());
    meets = connection.group.has_peers();
    if (meets) balance = meet_at_close(state, shared, group);
  } catch (const Error& error) {
    // The error of an operation that leaves the group usable does not end the group.
    if (meets || !connection.is_usable()) break_group(state, connection, error);
    throw;
  }
  std::exception_ptr failure;
  keep_failure(failure, [&] {
    state.runtime->in_flight.end_receives(&connection, control.monitor, state.deadline(),
                                          balance != 0 || !meets);
  });
  bool may_hold_messages = balance != 0;
  // A member that did not know that the group is broken has not met the others.
  if (may_hold_messages && !detail::counts_broken(balance))
    keep_failure(failure, [&] {
      may_hold_messages =
          !detail::compare_messages({&shared, 1}, control, connection.comm(),
                                    WaitPoint::of(group.ranks(), "close of " + group.name(),
                                                  "messages of " + connection.group.identity))
               .empty();
    });
  if (connection.group.has_peers())
    keep_failure(failure, [&] { connection.guard().compare_at_close(); });
  if (state.device) state.device->close(connection, state.deadline());
  state.runtime->device_calls.look();
  if (state.runtime->device_watch)
    state.runtime->device_watch->close(connection, state.runtime->device_calls);
  connection.close(may_hold_messages);
  std::erase_if(state.connections, [&](const auto& c) { return c.get() == &connection; });
  state.dynamic.erase(found);
  if (failure != nullptr) std::rethrow_exception(failure);
}

void Mesh::close() {
  if (is_closed()) return;
  if (!mpi::is_active())
    throw UsageError{"close() is called after MPI_Finalize",
                     "close the mesh before MPI is finalised"};
  detail::MeshState& state = open_state("close");
  const detail::CallLock lock{*state.runtime};
  detail::ControlPlane& control = *state.control;
  control.throw_if_lost();
  state.runtime->in_flight.continue_in_this_thread();
  Agreement agreement;
  bool has_failed = false;
  const auto fail = [&](std::string reason) {
    agreement.fail(std::move(reason));
    has_failed = true;
  };
  try {
    state.runtime->in_flight.finish(nullptr, control.monitor, state.deadline());
    if (state.device) state.device->quiesce(state.connections, state.deadline());
  } catch (const LostRanks&) {
    throw;
  } catch (const Error& error) {
    fail(error.message());
  }
  if (state.device)
    if (std::string graphs = state.device->living_graphs(nullptr); !graphs.empty())
      fail(fmt::format("{}: destroy them first", graphs));
  for (const auto& connection : state.connections) connection->guard().leave();
  bool differ = false;
  std::exception_ptr failure;  // the first one; MPI's communicators are closed nevertheless
  try {
    const detail::AtLook look{control, [&] { look_at_groups(state, failure); }};
    differ = meet_at_close(state, has_failed, agreement);
  } catch (const LostRanks&) {
    throw;
  } catch (const Error& error) {
    control.throw_if_result_of_loss(error);
    const bool is_mismatch = dynamic_cast<const MismatchError*>(&error) != nullptr;
    const bool has_ended = failure != nullptr || control.board().who_gave_up_close();
    if (has_ended || !is_mismatch) end_close(state, error);
    for (const auto& connection : state.connections) connection->guard().stay();
    // No rank goes on before all have taken back that they leave.
    monitored_barrier(control.comm(), control.monitor,
                      WaitPoint::of_all(control.comm().size(), "the end of a close that failed"),
                      state.deadline());
    throw;  // the mesh stays open
  }
  keep_failure(failure, [&] {
    state.runtime->in_flight.end_receives(nullptr, control.monitor, state.deadline(), differ);
  });
  bool all_may_hold_messages = differ;
  std::set<std::uint64_t> broken;
  if (differ)
    keep_failure(failure, [&] {
      broken = detail::compare_messages(state.connections, control, control.comm(),
                                        messages_point(control));
      all_may_hold_messages = false;
    });
  if (control.losses != nullptr) {
    control.losses->close();
    mpi::record_companions(control.losses->processes(),
                           Deadline::Duration{control.deadline().seconds()});
  }
  control.leave(detail::Presence::closed);
  state.runtime->device_calls.look();
  state.runtime->device_calls.clear();
  state.runtime->is_closed = true;  // the connections are closed after the devices
  state.shared->close_windows();
  for (const auto& connection : state.connections)
    keep_failure(failure, [&] { connection->guard().compare_at_close(); });
  try {
    if (state.device) state.device->close(state.connections, state.deadline());
  } catch (const Error& error) {
    if (may_be_of_death(control, error))
      control.log()->report("after all ranks had come to close the mesh: " + error.message());
    else
      failure = std::current_exception();
  }
  for (const auto& connection : state.connections)
    connection->close(all_may_hold_messages || broken.contains(connection->group.key()));
  state.shared->close();
  control.close();
  state.mark.close();
  // All ranks have come, so the mesh is closed: a loss after that concerns nobody.
  if (failure != nullptr && !control.is_lost()) std::rethrow_exception(failure);
}

void Mesh::abort() {
  detail::MeshState& state = open_state("abort");
  const std::string why = abort_devices(state, "the mesh was aborted");
  for (const auto& connection : state.connections) connection->mark_broken(Error{why});
}

}  // namespace rankmesh

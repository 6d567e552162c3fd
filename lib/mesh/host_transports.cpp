// SPDX-License-Identifier: BSD-3-Clause
// The guard and the transports of a group for host memory.
#include <memory>
#include <utility>

#include "detail/state.hpp"
#include "transport/detail/exchange_guard.hpp"
#include "transport/detail/guarded_transport.hpp"
#include "transport/detail/local_transport.hpp"
#include "transport/detail/mpi_transport.hpp"

namespace rankmesh::detail {

GroupMembers group_members(const GroupDescription& group, const ControlPlane& control) {
  return {group.ranks, control.names, group.names, GroupKey{group.key(), control.key_of_mesh}};
}

namespace {

HostTransports host_transports(const GroupDescription& group, const mpi::CommunicatorView& comm,
                               const MeshOptions& options, const ControlPlane& control,
                               SharedTransport shared, ProgramTransports own) {
  HostTransports transports;
  if (group.ranks.size() == 1) {
    auto local = std::make_unique<LocalTransport>();
    transports.calls = &local->calls();
    transports.list.push_back(std::move(local));
    return transports;
  }
  transports.to_itself = std::make_unique<LocalTransport>();
  const bool checks = options.check.value_or(false);
  const bool survives = options.survive.has_value();
  ShmTransport* const memory = shared.transport.get();
  // Inside a node, calls are always compared: without shared memory, by messages.
  const bool exchanges = memory == nullptr && (checks || (group.nodes == 1 && !group.is_adopted));
  const GroupMembers members = group_members(group, control);
  GroupGuard& guard = transports.guard;
  NoteGuard* notes = nullptr;
  if (memory != nullptr)
    guard.collectives = memory;
  else if (exchanges)
    guard.collectives = notes = &guard.create<ExchangeGuard>(comm, members);
  else
    guard.collectives = notes = &guard.create<NoteGuard>(comm, members);
  transports.calls = &guard.collectives->calls();
  const bool is_guarded = memory != nullptr || exchanges;
  if (is_guarded || shared.levels) guard.all.push_back(guard.collectives);
  if (checks) guard.all.push_back(guard.messages = &guard.create<MessageGuard>(comm, members));
  guard.compares_on_device = checks;
  std::unique_ptr<RoutedTransport> mpi = std::make_unique<MpiTransport>(
      comm, options.largest_count, is_guarded ? nullptr : &guard.collectives->calls(), survives);
  if (memory != nullptr && checks)
    memory->leave_messages_to_others(
        "the option check compares messages on both members, over MPI");
  else if (memory != nullptr)
    memory->carry_large_messages_by(*mpi);
  if (is_guarded)
    mpi = std::make_unique<GuardedTransport>(
        std::move(mpi), guard.collectives, guard.messages,
        options.deadline.has_value() || survives || memory == nullptr);
  transports.list.push_back(std::move(mpi));
  if (memory != nullptr)
    transports.list.push_back(std::move(shared.transport));
  else
    transports.absent.emplace("shm", std::move(shared.why_not));
  if (shared.levels) {
    auto levels =
        std::make_unique<HierarchicalTransport>(comm, std::move(*shared.levels), *notes, survives);
    if (levels->inside() != nullptr) guard.all.push_back(levels->inside());
    transports.list.push_back(std::move(levels));
  } else {
    transports.absent.emplace("hierarchical", std::move(shared.why_no_levels));
  }
  add_program_transports(transports, std::move(own), comm, options);
  return transports;
}

}  // namespace

std::shared_ptr<Connection> connect(GroupDescription group, GroupCommunicator comm,
                                    const MeshOptions& options, const ControlPlane& control,
                                    SharedTransport shared, ProgramTransports own,
                                    Recordings recordings) {
  HostTransports host =
      host_transports(group, comm.view, options, control, std::move(shared), std::move(own));
  return std::make_shared<Connection>(std::move(group), std::move(comm.owned), comm.view,
                                      std::move(host), nullptr, std::move(recordings));
}

}  // namespace rankmesh::detail

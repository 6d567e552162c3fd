// SPDX-License-Identifier: BSD-3-Clause
// The transports of a group for host memory.
#include <memory>
#include <utility>

#include "detail/state.hpp"
#include "rankmesh/base/hash.hpp"
#include "rankmesh/transport/local_transport.hpp"
#include "rankmesh/transport/mpi_transport.hpp"
#include "transport/detail/checked_transport.hpp"
#include "transport/detail/compared_transport.hpp"

namespace rankmesh::detail {

HostTransports host_transports(const GroupDescription& group, const mpi::CommunicatorView& comm,
                               const MeshOptions& options, const ControlPlane& control,
                               SharedTransport shared, ProgramTransports own) {
  HostTransports transports;
  ProgramTransport::Meeting meeting{.shared = shared.transport.get()};
  if (group.ranks.size() == 1) {
    transports.list.push_back(std::make_unique<LocalTransport>());
    return transports;
  }
  transports.to_itself = std::make_unique<LocalTransport>();
  HierarchicalTransport::Counter counter;
  transports.tell_who_leaves = shared.transport != nullptr || options.check.value_or(false);
  if (options.check.value_or(false)) {
    if (shared.transport != nullptr)
      shared.transport->leave_messages_to_others(
          "the option check compares messages on both members, over MPI");
    auto checked = std::make_unique<CheckedTransport>(
        comm,
        CheckedTransport::Options{.largest_count = options.largest_count,
                                  .has_deadline = options.deadline.has_value()},
        GroupMembers{group.ranks, control.names, group.names,
                     GroupKey{hash_bytes(group.identity + group.ranks.to_string()).low,
                              control.key_of_mesh}},
        shared.transport.get());
    transports.comparison = checked.get();
    meeting.exchange = counter.exchange = checked->exchange();
    transports.list.push_back(std::move(checked));
  } else if (shared.transport != nullptr) {
    auto compared =
        std::make_unique<ComparedTransport>(comm, options.largest_count, *shared.transport);
    shared.transport->carry_large_messages_by(*compared);
    transports.list.push_back(std::move(compared));
  } else {
    auto of_mpi = std::make_unique<MpiTransport>(comm, options.largest_count);
    meeting.mpi = counter.mpi = of_mpi.get();
    transports.list.push_back(std::move(of_mpi));
  }
  if (shared.transport != nullptr)
    transports.list.push_back(std::move(shared.transport));
  else
    transports.absent.emplace("shm", std::move(shared.why_not));
  if (shared.levels)
    transports.list.push_back(
        std::make_unique<HierarchicalTransport>(comm, std::move(*shared.levels), counter));
  else
    transports.absent.emplace("hierarchical", std::move(shared.why_no_levels));
  add_program_transports(transports, std::move(own), meeting, comm, options);
  return transports;
}

}  // namespace rankmesh::detail

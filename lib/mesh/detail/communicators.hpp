// SPDX-License-Identifier: BSD-3-Clause
// The MPI communicators of the groups of a mesh.
#pragma once

#include <vector>

#include "connection_plan.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/mpi/members.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "shared_memory_backend.hpp"

namespace rankmesh::detail {

/// What decides whether a group gets a communicator of its own. The same on all members of a group.
struct CommunicatorNeeds {
  const MeshOptions& options;
  const RouteTable& routes;
  const SharedMemoryBackend& shared;
  bool has_devices = false;
};

/// The communicators of the groups of this rank, in the order of ConnectionPlan::groups.
struct GroupCommunicators {
  /// Empty where a group has none of its own.
  std::vector<mpi::Communicator> owned;
  /// How MPI reaches the members: on their own communicator, or on that of the mesh.
  std::vector<mpi::Members> members;

  /// Returns the communicator of exactly the members of a group, also of a group of one rank; an
  /// empty view if there is none.
  [[nodiscard]] mpi::CommunicatorView view(std::size_t group) const {
    return members[group].have_communicator() ? members[group].comm() : mpi::CommunicatorView{};
  }
};

/// Creates the communicators of those groups that need one. Collective over the members of each of
/// them; blocks. A group inside one node needs one only if
/// - MeshOptions::communicators asks for one in every group,
/// - a rule of the program, of the environment or of the mesh file gives calls of the group to mpi,
/// - a transport of the program or the device transport of the group uses it,
/// - the node has no shared memory, or MPI has too few tags to tell the groups apart.
GroupCommunicators make_communicators(const ConnectionPlan& plan, const mpi::CommunicatorView& mesh,
                                      const CommunicatorNeeds& needs);

}  // namespace rankmesh::detail

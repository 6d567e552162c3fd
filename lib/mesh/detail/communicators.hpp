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

/// What decides whether a group gets a communicator of its own. The same on all ranks.
struct CommunicatorNeeds {
  const MeshOptions& options;
  const RouteTable& routes;
  const SharedMemoryBackend& shared;
  bool has_devices = false;
};

/// The communicator of a group.
struct GroupCommunicator {
  mpi::Communicator owned;  ///< Empty if the group has none of its own.
  /// How MPI reaches the members: on their own communicator, or on that of the mesh.
  mpi::Members members;

  /// Returns the communicator of exactly the members of the group, also of a group of one rank; an
  /// empty view if there is none.
  [[nodiscard]] mpi::CommunicatorView view() const {
    return members.have_communicator() ? members.comm() : mpi::CommunicatorView{};
  }
};

/// Returns whether a group needs a communicator of its own. Local. A group inside one node needs
/// one only if
/// - MeshOptions::communicators asks for one in every group,
/// - a rule of the program, of the environment or of the mesh file gives calls of the group to mpi,
/// - a transport of the program or the device transport of the group uses it,
/// - the node has no shared memory.
[[nodiscard]] bool needs_communicator(const GroupDescription& group,
                                      const CommunicatorNeeds& needs);

/// Creates the communicator of a group if it needs one. Collective over the members in this case;
/// blocks.
/// @param is_needed  The same on all members. A group also gets a communicator if MPI has too few
///                   tags to tell the groups apart.
[[nodiscard]] GroupCommunicator make_communicator(const GroupDescription& group,
                                                  const mpi::CommunicatorView& mesh,
                                                  bool is_needed);

/// Creates the communicators of those groups of the plan that need one, in the order of
/// ConnectionPlan::groups. Collective over the members of each of them; blocks.
std::vector<GroupCommunicator> make_communicators(const ConnectionPlan& plan,
                                                  const mpi::CommunicatorView& mesh,
                                                  const CommunicatorNeeds& needs);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The MPI communicators of the groups of a mesh.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// The communicator of a group.
struct GroupCommunicator {
  mpi::Communicator owned;     ///< Empty for a group of one rank.
  mpi::CommunicatorView view;  ///< Of `owned`, or MPI_COMM_SELF.
};

/// Creates the communicator of a group. Collective over its members, who create their common groups
/// in the same order; blocks. Other ranks take no part.
/// @param control  Of the mesh.
/// @throws Error if MPI cannot create it, for example because this process has too many.
/// @throws LostRanks
[[nodiscard]] GroupCommunicator make_communicator(const GroupDescription& group,
                                                  const ControlPlane& control);

/// Creates a communicator by a function of MPI that would block for ever if a rank died meanwhile.
/// If the job may go on without ranks, the function runs in a thread, which is left behind when a
/// rank is lost. If MPI allows only one thread, this process then ends with a message.
/// @param members  Who creates it, as ranks of the control plane's communicator.
/// @param create  Must refer to nothing that ends before the process.
/// @param losses_before  The losses that this process has seen; a later one ends the wait.
/// @throws LostRanks
/// @throws TimeoutError if MPI does not return before the deadline of the mesh.
[[nodiscard]] mpi::Communicator create_bounded(const ControlPlane& control,
                                               std::uint64_t losses_before,
                                               const std::vector<int>& members,
                                               const std::function<mpi::Communicator()>& create);

}  // namespace rankmesh::detail

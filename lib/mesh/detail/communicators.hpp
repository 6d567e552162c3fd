// SPDX-License-Identifier: BSD-3-Clause
// The MPI communicators of the groups of a mesh.
#pragma once

#include "group/detail/connection.hpp"
#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::detail {

/// The communicator of a group.
struct GroupCommunicator {
  mpi::Communicator owned;     ///< Empty for a group of one rank.
  mpi::CommunicatorView view;  ///< Of `owned`, or MPI_COMM_SELF.
};

/// Creates the communicator of a group. Collective over its members, who create their common groups
/// in the same order; blocks. Other ranks take no part.
/// @param mesh  The communicator of the mesh.
/// @throws Error if MPI cannot create it, for example because this process has too many.
[[nodiscard]] GroupCommunicator make_communicator(const GroupDescription& group,
                                                  const mpi::CommunicatorView& mesh);

}  // namespace rankmesh::detail

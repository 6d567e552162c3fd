// Who shares my node.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Asks MPI which ranks share memory. Collective over the communicator, blocking: one
/// MPI_Comm_split_type, one broadcast inside each node, one all-gather of 4 bytes per rank.
RANKMESH_API Placement discover_nodes(const CommunicatorView& comm);

}  // namespace rankmesh::mpi

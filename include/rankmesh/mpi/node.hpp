// Who shares my node.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// The ranks that share this rank's node.
struct Node {
  Communicator comm;
  int cores = 0;
};

/// Asks MPI which ranks share memory. Collective over the communicator, blocking: one
/// MPI_Comm_split_type, one broadcast inside each node, one all-gather of 4 bytes per rank.
/// @param own  takes the communicator of this rank's node, in the order of `comm`, and how many
/// cores its ranks
///             may run on together; one more reduction inside each node. Null: it is freed.
RANKMESH_API Placement discover_nodes(const CommunicatorView& comm, Node* own = nullptr);

}  // namespace rankmesh::mpi

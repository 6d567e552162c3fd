// SPDX-License-Identifier: BSD-3-Clause
// The ranks that share a node.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Describes this rank's node.
struct Node {
  Communicator comm;  ///< The communicator of the ranks on the node.
  int cores = 0;      ///< The number of cores on which these ranks may run, all together.
};

/// Finds out which ranks share memory. Collective over the communicator; blocks. Costs one
/// MPI_Comm_split_type, one broadcast in each node, and one all-gather of 4 bytes per rank.
/// @param own  If not null, it receives this rank's node, whose ranks have the order of `comm`.
/// Finding the node costs another reduction in each node.
RANKMESH_API Placement discover_nodes(const CommunicatorView& comm, Node* own = nullptr);

}  // namespace rankmesh::mpi

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
};

/// Finds out which ranks share memory. This function is collective over the communicator, and it
/// blocks. It costs one MPI_Comm_split_type, one broadcast and one reduction within each node, and
/// one all-gather of 8 bytes per rank. The placement contains the number of cores of each node. A
/// core counts if at least one rank of the node may run on it.
/// @param own  receives the description of this rank's node, unless `own` is null. The ranks of the
/// node are in the order of `comm`.
RANKMESH_API Placement discover_nodes(const CommunicatorView& comm, Node* own = nullptr);

}  // namespace rankmesh::mpi

// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job tell each other before a mesh has a communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/wait/agreement.hpp"

namespace rankmesh::detail {

/// The facts of all ranks, the same on all of them.
struct JobFacts {
  /// Ranks with the same host name, on a machine that was started once, are on one node.
  Placement placement;
  std::uint64_t key_of_mesh = 0;  ///< Differs from that of other meshes.
  bool agree_on_devices = false;  ///< Whether the summaries of all ranks are equal.
};

/// Gathers the facts on rank 0, which broadcasts what follows from them. Then receives the messages
/// that were sent on the program's communicator. Collective; blocks. Costs one MPI_Igather of 176
/// bytes per rank, and one MPI_Ibcast of 8 bytes per rank.
/// @param participants  The program's communicator.
/// @param devices       What this rank has to say about devices.
/// @param reorder       See MeshOptions::reorder. The facts are in the order of the mesh's ranks.
/// @throws TimeoutError if ranks are missing; the error names them.
JobFacts gather_facts(const Participants& participants, const Agreement::Summary& devices,
                      const std::vector<std::int64_t>& reorder);

}  // namespace rankmesh::detail

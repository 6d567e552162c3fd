// SPDX-License-Identifier: BSD-3-Clause
// What the ranks of a job tell each other before a mesh has a communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "device_backend.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Gathers on rank 0 what each rank says about itself, and broadcasts what follows from it: the
/// placement and the key of the mesh, and whether all ranks say the same about devices. Ranks with
/// the same host name, on a machine that was started once, are on one node. Then receives the
/// messages that were sent on the program's communicator. Collective; blocks. Costs one MPI_Igather
/// of 176 bytes per rank, and one MPI_Ibcast of 8 bytes per rank.
/// @param control  On the program's communicator.
/// @param reorder  See MeshOptions::reorder. The placement is in the order of the mesh's ranks.
/// @param first_question  Began before the ranks met. Until it passes, no rank asks the others in a
///                        wait that began since then.
/// @throws TimeoutError if ranks are missing; the error names them.
void gather_facts(ControlPlane& control, DeviceProbe& devices,
                  const std::vector<std::int64_t>& reorder, const Deadline& first_question);

}  // namespace rankmesh::detail

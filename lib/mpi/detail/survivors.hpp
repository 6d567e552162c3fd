// SPDX-License-Identifier: BSD-3-Clause
// Communicators of the processes that are left.
#pragma once

#include <cstdint>
#include <span>

#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Does what create_group() does, also if other ranks of the parent have failed. An MPI library
/// that tolerates faults creates no communicator on one that contains processes of which it knows
/// that they have failed. Collective over the given ranks; blocks.
/// @param mesh  A number that no other mesh of the job has.
RANKMESH_API Communicator create_of_survivors(const CommunicatorView& parent,
                                              std::span<const int> ranks, int tag,
                                              std::uint64_t mesh);

}  // namespace rankmesh::mpi

// SPDX-License-Identifier: BSD-3-Clause
// The same processes in two communicators.
#pragma once

#include <span>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"

namespace rankmesh::mpi {

/// Returns the ranks of `to` of the processes that have these ranks of `from`; MPI_UNDEFINED for
/// processes that are not in `to`. Local.
[[nodiscard]] std::vector<int> translated_ranks(const CommunicatorView& from,
                                                std::span<const int> ranks,
                                                const CommunicatorView& to);

}  // namespace rankmesh::mpi

// SPDX-License-Identifier: BSD-3-Clause
// A barrier that names the missing ranks.
#pragma once

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// Waits until all ranks of a communicator have called this function. It calls MPI_Ibarrier and
/// waits for it with the monitor. Collective over `comm`; blocks.
///
/// Call it before blocking functions of MPI, which wait for ever if a rank is missing.
/// @param point  A wait point whose members are the ranks of `comm`, numbered as in the monitor's
///               communicator.
/// @throws TimeoutError  The error names the missing ranks. The barrier is then still in progress,
///                       so `comm` cannot be used for other collective operations.
RANKMESH_API void monitored_barrier(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                                    const WaitPoint& point, const Deadline& deadline);

}  // namespace rankmesh

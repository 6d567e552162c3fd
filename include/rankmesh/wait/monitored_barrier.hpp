// SPDX-License-Identifier: BSD-3-Clause
// A barrier that names the missing ranks.
#pragma once

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// Waits until all ranks of a communicator have called this function. The function starts an
/// MPI_Ibarrier, and the monitor waits for its request. The function is collective over `comm`, and
/// it blocks.
///
/// Call this barrier before a blocking function of MPI, because such a function waits for ever if a
/// rank is missing.
/// @param point  a wait point whose members are the ranks of `comm`, numbered as in the monitor's
/// communicator.
/// @throws TimeoutError if the deadline passes. The error names the missing ranks. The barrier is
/// then still in progress, so `comm` cannot be used for other collective operations.
RANKMESH_API void monitored_barrier(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                                    const WaitPoint& point, const Deadline& deadline);

}  // namespace rankmesh

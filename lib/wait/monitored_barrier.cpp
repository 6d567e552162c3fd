// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/wait/monitored_barrier.hpp"

#include "rankmesh/mpi/error.hpp"

namespace rankmesh {

void monitored_barrier(const mpi::CommunicatorView& comm, WaitMonitor& monitor,
                       const WaitPoint& point, const Deadline& deadline) {
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Ibarrier(comm.native(), &request), "MPI_Ibarrier");
  monitor.wait({&request, 1}, point, deadline);
}

}  // namespace rankmesh

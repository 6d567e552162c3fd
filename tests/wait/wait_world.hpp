// SPDX-License-Identifier: BSD-3-Clause
// A communicator and a monitor for one test of waits.
#pragma once

#include <string>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/wait/wait_monitor.hpp"
#include "support/mpi_world.hpp"

namespace rankmesh_test {

struct WaitWorld {
  rankmesh::mpi::Communicator own =
      rankmesh::mpi::duplicate(rankmesh::mpi::CommunicatorView{MPI_COMM_WORLD});
  rankmesh::WaitMonitor monitor{own.view(), rankmesh::WaitMonitor::Audience::own, {}};
  rankmesh::WaitPoint point = rankmesh::WaitPoint::of_all(size(), "the start of a test");

  [[nodiscard]] static rankmesh::Deadline after(double seconds) {
    return rankmesh::Deadline{rankmesh::Deadline::Duration{seconds}};
  }
};

}  // namespace rankmesh_test

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/node.hpp"

#include <sched.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {

namespace {

// Counts the cores on which at least one rank of the node may run. The launcher may bind each rank
// to one core, or all ranks to a few.
int count_cores(const CommunicatorView& node) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0)
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i) CPU_SET(i, &mine);
  cpu_set_t all;
  check(MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, node.native()), "MPI_Allreduce");
  return CPU_COUNT(&all);
}

}  // namespace

Placement discover_nodes(const CommunicatorView& comm, Node* own) {
  MPI_Comm native = MPI_COMM_NULL;
  check(
      MPI_Comm_split_type(comm.native(), MPI_COMM_TYPE_SHARED, comm.rank(), MPI_INFO_NULL, &native),
      "MPI_Comm_split_type");
  Communicator node{native};
  // Ranks keep their order, so member 0 has the lowest rank of the node.
  std::int32_t lowest = comm.rank();
  check(MPI_Bcast(&lowest, 1, MPI_INT32_T, 0, node.view().native()), "MPI_Bcast");
  if (own != nullptr) {
    own->cores = count_cores(node.view());
    own->comm = std::move(node);
  } else {
    node.free();
  }
  std::vector<std::int32_t> lowest_of(static_cast<std::size_t>(comm.size()));
  check(MPI_Allgather(&lowest, 1, MPI_INT32_T, lowest_of.data(), 1, MPI_INT32_T, comm.native()),
        "MPI_Allgather");
  return Placement{lowest_of};
}

}  // namespace rankmesh::mpi

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
  struct Facts {
    std::int32_t lowest = 0;
    std::int32_t cores = 0;
  };
  Facts mine{.lowest = comm.rank()};
  check(MPI_Bcast(&mine.lowest, 1, MPI_INT32_T, 0, node.view().native()), "MPI_Bcast");
  mine.cores = count_cores(node.view());
  if (own != nullptr)
    own->comm = std::move(node);
  else
    node.free();
  std::vector<Facts> facts(static_cast<std::size_t>(comm.size()));
  check(MPI_Allgather(&mine, 2, MPI_INT32_T, facts.data(), 2, MPI_INT32_T, comm.native()),
        "MPI_Allgather");
  std::vector<std::int32_t> lowest;
  std::vector<std::int32_t> cores;
  for (const Facts& one : facts) {
    lowest.push_back(one.lowest);
    cores.push_back(one.cores);
  }
  return Placement{lowest, cores};
}

}  // namespace rankmesh::mpi

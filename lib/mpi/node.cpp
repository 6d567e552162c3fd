#include "rankmesh/mpi/node.hpp"

#include <vector>

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {

Placement discover_nodes(const CommunicatorView& comm) {
  MPI_Comm native = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm.native(), MPI_COMM_TYPE_SHARED, comm.rank(), MPI_INFO_NULL, &native),
        "MPI_Comm_split_type");
  Communicator node{native};
  // Ordered by world rank, so member 0 has the node's lowest.
  std::int32_t lowest = comm.rank();
  check(MPI_Bcast(&lowest, 1, MPI_INT32_T, 0, node.view().native()), "MPI_Bcast");
  node.free();
  std::vector<std::int32_t> lowest_of(static_cast<std::size_t>(comm.size()));
  check(MPI_Allgather(&lowest, 1, MPI_INT32_T, lowest_of.data(), 1, MPI_INT32_T, comm.native()),
        "MPI_Allgather");
  return Placement{lowest_of};
}

}  // namespace rankmesh::mpi

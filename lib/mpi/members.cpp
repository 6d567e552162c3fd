// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/mpi/members.hpp"

#include "rankmesh/mpi/error.hpp"

namespace rankmesh::mpi {

std::int64_t most_slots() {
  int* highest = nullptr;
  int is_set = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &is_set), "MPI_Comm_get_attr");
  // The tags of slot s end below (s + 1) * tags. The communicator's own messages use slot 0.
  return is_set == 0 ? 0 : (std::int64_t{*highest} + 1) / Members::tags - 1;
}

}  // namespace rankmesh::mpi

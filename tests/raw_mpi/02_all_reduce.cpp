// SPDX-License-Identifier: BSD-3-Clause
// examples/02_all_reduce.cpp without rankmesh.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size % 2 != 0) {
    if (rank == 0) std::fprintf(stderr, "%d ranks cannot be divided into tp groups of 2\n", size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Comm tp = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &tp);
  std::vector<int> sums{rank, 10 * rank};
  MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_INT, MPI_SUM, tp);
  double mean = rank;
  MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  mean /= size;
  if (rank % 2 == 0)
    std::printf("dp %d: sums %d and %d; the mean of all ranks is %g\n", rank / 2, sums[0], sums[1],
                mean);
  MPI_Comm_free(&tp);
  MPI_Finalize();
}

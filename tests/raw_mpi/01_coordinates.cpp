// SPDX-License-Identifier: BSD-3-Clause
// examples/01_coordinates.cpp without rankmesh.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int tp_size = 2;
  if (size % tp_size != 0) {
    if (rank == 0) std::fprintf(stderr, "%d ranks cannot be divided into tp groups of 2\n", size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int dp = rank / tp_size;
  const int tp = rank % tp_size;
  const int dp_size = size / tp_size;
  std::printf("rank %d: dp %d, tp %d; its dp group goes from rank %d to rank %d\n", rank, dp, tp,
              tp, tp + (dp_size - 1) * tp_size);
  MPI_Finalize();
}

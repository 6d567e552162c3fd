// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 calls MPI_Finalize while the others still look for messages. Uses MPI alone: where this
// hangs, every program may hang when it ends (see tests/support/mpich_idle.c).
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Barrier(MPI_COMM_WORLD);  // connects the hosts
  const double end = MPI_Wtime() + 0.3;
  while (rank != 0 && MPI_Wtime() < end) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  if (size < 2) fprintf(stderr, "the job has one rank: is the launcher another MPI library's?\n");
  return size < 2;
}

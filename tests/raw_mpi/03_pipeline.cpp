// SPDX-License-Identifier: BSD-3-Clause
// examples/03_pipeline.cpp without rankmesh.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int stage = 0;
  int stages = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &stage);
  MPI_Comm_size(MPI_COMM_WORLD, &stages);
  int value = stage;
  if (stage > 0) {
    int received = 0;
    MPI_Recv(&received, 1, MPI_INT, stage - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    value += received;
  }
  if (stage + 1 < stages) MPI_Send(&value, 1, MPI_INT, stage + 1, 0, MPI_COMM_WORLD);
  std::printf("stage %d: %d\n", stage, value);
  MPI_Finalize();
}

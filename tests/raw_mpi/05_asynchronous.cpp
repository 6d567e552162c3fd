// SPDX-License-Identifier: BSD-3-Clause
// examples/05_asynchronous.cpp without rankmesh.
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> gradients(1 << 18, 1.0F);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(MPI_IN_PLACE, gradients.data(), static_cast<int>(gradients.size()), MPI_FLOAT,
                 MPI_SUM, MPI_COMM_WORLD, &request);
  double sum = 0;
  for (int i = 1; i <= 1000000; ++i) {
    sum += std::sqrt(i);
    int is_done = 0;
    if (i % 10000 == 0) MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  std::printf("rank %d: sums of %g and %g\n", rank, gradients[0], sum);
  MPI_Finalize();
}

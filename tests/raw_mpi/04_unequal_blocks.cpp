// SPDX-License-Identifier: BSD-3-Clause
// examples/04_unequal_blocks.cpp without rankmesh.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> counts;
  std::vector<int> displacements;
  for (int k = 0, next = 0; k < size; ++k) {
    counts.push_back(10 / size + (k < 10 % size ? 1 : 0));
    displacements.push_back(next);
    next += counts.back();
  }
  std::vector<int> all;
  if (rank == 0) all = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const int count = counts[static_cast<std::size_t>(rank)];
  const int begin = displacements[static_cast<std::size_t>(rank)];
  std::vector<int> mine(static_cast<std::size_t>(count));
  MPI_Scatterv(all.data(), counts.data(), displacements.data(), MPI_INT, mine.data(), count,
               MPI_INT, 0, MPI_COMM_WORLD);
  for (int& number : mine) number *= number;
  std::printf("rank %d has %d numbers from %d\n", rank, count, begin);
  MPI_Gatherv(mine.data(), count, MPI_INT, all.data(), counts.data(), displacements.data(), MPI_INT,
              0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("the last square is %d\n", all.back());
  MPI_Finalize();
}

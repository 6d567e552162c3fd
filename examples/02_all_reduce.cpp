// SPDX-License-Identifier: BSD-3-Clause
// Sums over the ranks of each tp group, and an average over all ranks.
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=2"};
    const int rank = mesh.rank().to_int();
    std::vector<int> sums{rank, 10 * rank};
    mesh["tp"].all_reduce(sums);  // in place: both members get the sums
    const double mean = mesh["world"].all_reduce(1.0 * rank, rankmesh::ReduceOp::avg);
    if (mesh["tp"].is_first())
      std::printf("dp %d: sums %d and %d; the mean of all ranks is %g\n",
                  mesh.coordinate("dp").to_int(), sums[0], sums[1], mean);
    mesh.close();
  });
}

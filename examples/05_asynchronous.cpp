// SPDX-License-Identifier: BSD-3-Clause
// A sum over all ranks runs while each rank computes something else.
#include <cmath>
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
    std::vector<float> gradients(1 << 18, 1.0F);
    auto work = mesh["dp"].all_reduce_async(gradients);  // returns at once
    double sum = 0;
    for (int i = 1; i <= 1000000; ++i) {
      sum += std::sqrt(i);
      if (i % 10000 == 0) mesh.progress();  // lets the operation go on
    }
    work.wait();  // only now may the program use the gradients
    std::printf("rank %d: sums of %g and %g\n", mesh.rank().to_int(), gradients[0], sum);
    mesh.close();
  });
}

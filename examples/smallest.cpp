// SPDX-License-Identifier: BSD-3-Clause
// Two pipeline stages of two tensor-parallel ranks each: sums over tp, then passes the sum on.
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {  // initialises and finalises MPI, and reports errors
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=2,tp=2"};  // the last dimension varies fastest
    std::vector<float> values(1024, 1.0F);
    mesh["tp"].all_reduce(values);  // blocks; over the two ranks of this stage
    if (!mesh["pp"].is_last()) mesh["pp"].send(values, rankmesh::next);
    if (!mesh["pp"].is_first()) mesh["pp"].recv(values, rankmesh::prev);
    if (mesh.rank() == rankmesh::Rank{3})
      std::printf("rank 3 received %g from the first stage\n", values[0]);
    mesh.close();
  });
}

// SPDX-License-Identifier: BSD-3-Clause
// Every rank prints its place in the mesh.
#include <cstdio>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=2"};  // auto: as many as the ranks allow
    auto& dp = mesh["dp"];                                // this rank's group with the same tp
    std::printf("rank %d: dp %d, tp %d; its dp group goes from rank %d to rank %d\n",
                mesh.rank().to_int(), mesh.coordinate("dp").to_int(),
                mesh.coordinate("tp").to_int(), dp.first_rank().to_int(), dp.last_rank().to_int());
    mesh.close();
  });
}

// SPDX-License-Identifier: BSD-3-Clause
// Every rank prints its place in the mesh.
#include <iostream>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=2"};  // auto: as many as the ranks allow
    auto& dp = mesh["dp"];                                // this rank's group with the same tp
    std::cout << "rank " << mesh.rank() << ": dp " << mesh.coordinate("dp") << ", tp "
              << mesh.coordinate("tp") << "; its dp group has " << dp.size() << " ranks, from "
              << dp.first_rank() << " to " << dp.last_rank() << '\n';
    mesh.close();
  });
}

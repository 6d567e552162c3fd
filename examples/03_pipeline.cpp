// SPDX-License-Identifier: BSD-3-Clause
// A value moves through the stages of a pipeline. Each stage adds its number.
#include <iostream>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
    auto& pp = mesh["pp"];
    int value = pp.rank_in_group().to_int();
    if (!pp.is_first()) value += pp.recv<int>(rankmesh::prev);
    if (!pp.is_last()) pp.send(value, rankmesh::next);
    std::cout << "stage " << pp.rank_in_group() << " of " << pp.size() << ": " << value << '\n';
    mesh.close();
  });
}

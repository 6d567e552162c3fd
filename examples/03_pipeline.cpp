// SPDX-License-Identifier: BSD-3-Clause
// A value moves through the stages of a pipeline. Each stage adds its number.
#include <cstdio>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  return rankmesh::run(argc, argv, [] {
    rankmesh::Mesh mesh{MPI_COMM_WORLD, "pp=auto"};
    auto& pp = mesh["pp"];
    const int stage = pp.rank_in_group().to_int();
    int value = stage;
    if (!pp.is_first()) value += pp.recv<int>(rankmesh::prev);
    if (!pp.is_last()) pp.send(value, rankmesh::next);
    std::printf("stage %d: %d\n", stage, value);
    mesh.close();
  });
}

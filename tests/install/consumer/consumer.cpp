// SPDX-License-Identifier: BSD-3-Clause
// What a project elsewhere would write; built against the installed package only.
#include <cstdio>
#include <vector>

#include <rankmesh/rankmesh.hpp>

int main(int argc, char** argv) {
  const rankmesh::mpi::Environment environment{argc, argv};
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=2"};
  std::vector<float> ranks{static_cast<float>(mesh.rank().value() + 1)};
  mesh["tp"].all_reduce(ranks);
  const bool right = ranks.front() == 3;
  int all = right ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN,
                MPI_COMM_WORLD);  // MPI itself is linked, too
  if (mesh.rank() == rankmesh::Rank{0})
    std::printf("rankmesh %s: %s\n", rankmesh::version_string(), all == 1 ? "right" : "wrong");
  mesh.close();
  return all == 1 ? 0 : 1;
}

// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/memory.md.
#include <algorithm>

#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

// snippet: grid

TEST_CASE("memory: a type of one's own") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  Grid grid{2, 3, 3, std::vector<float>(6, 1)};
  mesh["tp"].all_reduce(grid);
  CHECK(grid.cells.back() == static_cast<float>(mesh.size()));
  Grid gaps{2, 3, 4, std::vector<float>(8, 1)};
  CHECK_THROWS_AS(mesh["tp"].all_reduce(gaps), rankmesh::UsageError);
  mesh.close();
}

TEST_CASE("memory: arrays of Eigen") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  // snippet: eigen
  CHECK(whole(3, 0) == static_cast<float>(tp.size()));
  CHECK(whole(3, 1) == 1);
  mesh.close();
}

TEST_CASE("memory: arrays with gaps") {
  SKIP_UNLESS(rankmesh_test::size() == 4, "needs 4 ranks");
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=2"};
  // snippet: strided
  CHECK(columns.minCoeff() == 1);
  mesh.close();
}

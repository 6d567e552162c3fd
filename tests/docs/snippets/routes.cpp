// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/routes.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("routes: explanations") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  // snippet: explain
  CHECK(mesh.size() == 8);
  mesh.close();
}

TEST_CASE("routes: symmetric memory") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  // snippet: symmetric
  CHECK(gradients[0] == 0.5F * static_cast<float>(mesh.size()));
  mesh.close();
}

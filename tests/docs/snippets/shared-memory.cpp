// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/shared-memory.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"

TEST_CASE("shared memory: symmetric memory") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  // snippet: symmetric
  CHECK(gradients[0] == 0.5F * static_cast<float>(mesh.size()));
  mesh.close();
}

// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/routes.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("routes: explanations") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  // snippet: explain
  CHECK(mesh.size() == 8);
  mesh.close();
}

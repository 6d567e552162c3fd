// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/placement.md.
#include <rankmesh/machine/machine.hpp>
#include <rankmesh/place/arrange.hpp>
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

TEST_CASE("placement: another order") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  // snippet: reorder
  CHECK(mesh.size() == 8);
  mesh.close();
}

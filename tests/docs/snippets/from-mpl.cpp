// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/from-mpl.md.
#include <rankmesh/rankmesh.hpp>

#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("from MPL: groups and operations") {
  // snippet: groups
  CHECK(value == static_cast<double>(column.size()));
  CHECK(all == std::vector<double>(all.size()));
  mesh.close();
}

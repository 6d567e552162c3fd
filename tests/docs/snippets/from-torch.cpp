// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/from-torch.md.
#include <rankmesh/rankmesh.hpp>

#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("from torch: groups and operations") {
  // snippet: groups
  CHECK(all == std::vector<float>(all.size(), x[0]));
  mesh.close();
}

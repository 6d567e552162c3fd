// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/from-kamping.md.
#include <rankmesh/rankmesh.hpp>

#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("from KaMPIng: groups and operations") {
  // snippet: groups
  CHECK(all.values.size() == static_cast<std::size_t>(comm.size() * (comm.size() - 1) / 2));
  CHECK(sum == comm.size());
  mesh.close();
}

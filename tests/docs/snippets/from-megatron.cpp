// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/from-megatron.md.
#include <rankmesh/rankmesh.hpp>

#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("from Megatron-LM: groups and operations") {
  // snippet: groups
  CHECK(number == dp.rank_in_group());
  CHECK(last);
  mesh.close();
}

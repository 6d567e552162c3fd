// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/from-vllm.md.
#include <rankmesh/rankmesh.hpp>

#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("from vLLM: groups and operations") {
  // snippet: groups
  CHECK(all == std::vector<float>(all.size(), 1.0F));
  mesh.close();
}

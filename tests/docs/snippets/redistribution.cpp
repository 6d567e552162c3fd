// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/redistribution.md.
#include <rankmesh/base/narrow_float.hpp>
#include <rankmesh/rankmesh.hpp>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("redistribution: weights for serving") {
  NEEDS_RANKS(4);
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "world=auto"};
  const int steps = 2;
  const auto train = [](auto& weights) { std::ranges::fill(weights, 1.5F); };
  // snippet: redistribution
  CHECK(std::ranges::all_of(served, [](BFloat16 value) { return value == BFloat16{1.5F}; }));
  mesh.close();
}

TEST_CASE("redistribution: relabelling") {
  using namespace rankmesh;
  // snippet: relabel
  CHECK(choice.moved_bytes == 0);
  CHECK(choice.moved_before > 0);
  CHECK(plan.volume().moved_bytes == 0);
}

TEST_CASE("redistribution: plan") {
  // snippet: plan
  CHECK(part[0].receives.size() == 1);
  CHECK(plan.volume().moved_bytes == plan.volume().least_moved_bytes);
}

// SPDX-License-Identifier: BSD-3-Clause
// The program of README.md.
#define main smallest  // runs as a function of this job
// snippet: smallest
#undef main

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("README: the smallest program") {
  SKIP_UNLESS(rankmesh_test::size() == 4, "needs 4 ranks");
  char name[] = "smallest";
  char* arguments[] = {name, nullptr};
  CHECK(smallest(1, arguments) == 0);
}

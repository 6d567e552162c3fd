// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/transfer.md.
#include <cstdio>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("transfer: plan") {
  // snippet: plan
  CHECK(part[0].receives.size() == 1);
  CHECK(plan.volume().moved_bytes == plan.volume().least_moved_bytes);
}

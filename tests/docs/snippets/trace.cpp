// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/trace.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"

TEST_CASE("trace: files on a signal") {
  // It is compiled and not run: the folder would be created at the root of this machine.
  const auto not_run = [] {
    // snippet: signal
  };
  CHECK(sizeof(not_run) == 1);
}

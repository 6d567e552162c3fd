// SPDX-License-Identifier: BSD-3-Clause
// Around the snippet of docs/surviving.md. tests/survive has the jobs in which ranks die.
#include <rankmesh/rankmesh.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("surviving: the loop") {
  const std::int64_t steps = 3;
  int restored = 0, kept = 0;
  const auto restore = [&](rankmesh::Mesh&, std::optional<std::int64_t> step) {
    CHECK(!step);
    ++restored;
  };
  const auto train = [](rankmesh::Mesh& mesh, std::int64_t) { mesh["world"].barrier(); };
  const auto keep = [&](std::int64_t) { ++kept; };
  const auto report = [](const std::string&) {};
  // snippet: loop
  CHECK(restored == 1);
  CHECK(kept == 3);
}

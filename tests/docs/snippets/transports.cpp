// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/transports.md. open_gloo is that of examples/transports/gloo.
#include <rankmesh/conformance/conformance.hpp>
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

// snippet: factory

namespace kit {
// snippet: conformance
}  // namespace kit

TEST_CASE("transports: a mesh with a transport of the program") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  std::vector<float> values(8, 1);
  // snippet: mesh
  CHECK(values[0] == 4);
  mesh.close();
}

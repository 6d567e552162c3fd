// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/transports.md. open_gloo is that of examples/transports/gloo.
#include <rankmesh/conformance/conformance.hpp>
#include <rankmesh/rankmesh.hpp>

#include <memory>
#include <thread>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

// snippet: factory

namespace sockets {
struct Connections {
  void end() {}
};
struct Exchange : rankmesh::Pending {
  Exchange(const rankmesh::Call&, std::shared_ptr<Connections>) {}
  bool test() override { return true; }
};
class SocketsTransport final : public rankmesh::Transport {
  [[nodiscard]] bool supports(const rankmesh::Call&) const override { return true; }
  // An indented snippet would be one of a function.
  // clang-format off
// snippet: start
  // clang-format on
  std::shared_ptr<Connections> connections_;
};
}  // namespace sockets

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

// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/transports.md. open_gloo is that of examples/transports/gloo.
#include <rankmesh/conformance/conformance.hpp>
#include <rankmesh/rankmesh.hpp>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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

namespace fabric {
bool open_device() { return rankmesh_test::rank() != 0; }
class FabricTransport final : public rankmesh::Transport {
 public:
  explicit FabricTransport(MPI_Comm) {}
  [[nodiscard]] bool supports(const rankmesh::Call&) const override { return false; }
  void run(const rankmesh::Call&, rankmesh::Waiter&) override {}
};
// snippet: fails_together
}  // namespace fabric

// snippet: members

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

TEST_CASE("transports: a factory that fails on one rank fails on all members of its group") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  rankmesh::MeshOptions options;
  options.transports = {{"fabric", fabric::open_fabric}};
  options.routes = "*.*=fabric";
  const auto error = rankmesh_test::thrown_by<rankmesh::MismatchError>([&] {
    const rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=2,tp=4", options};
  });
  CHECK_CONTAINS(error.message(), "a member has no device");
}

TEST_CASE("transports: what a transport reads of a call") {
  SKIP_UNLESS(rankmesh_test::size() > 1, "needs 2 ranks");
  rankmesh::MeshOptions options;
  options.routes = "*.*=broadcasts";
  options.transports["broadcasts"] = [](const rankmesh::TransportGroup& group) {
    return std::make_unique<Broadcasts>(group);
  };
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto", options};
  using rankmesh::Operation;
  CHECK(mesh["dp"].explain(Operation::reduce, 64).transport == "broadcasts");
  const auto report = rankmesh::conformance::check(
      mesh["dp"], {.operations = {Operation::all_gather, Operation::reduce}, .share = 24});
  for (const std::string& failure : report.failures) FAIL_CHECK(failure);
  mesh.close();
}

// SPDX-License-Identifier: BSD-3-Clause
// The choice of transports on an open mesh.
#include <doctest/doctest.h>

#include <cstdlib>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

TEST_CASE("explain() names the transport, the rule and its origin") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.routes = "tp.all_reduce:host:0-32K=mpi; *.broadcast=mpi"}};
  auto& tp = mesh["tp"];
  const RouteExplanation small = tp.explain(Operation::all_reduce, 32767);
  if (size() == 1) {
    CHECK(small.transport == "local");
    CHECK(small.to_string() ==
          "tp.all_reduce of 32767 bytes on the host: local, since a group of one rank only copies");
    mesh.close();
    return;
  }
  CHECK(small.transport == "mpi");
  CHECK(small.rule == "tp.all_reduce:host:0-32K=mpi");
  CHECK(small.origin == "MeshOptions::routes");
  CHECK(tp.explain(Operation::all_reduce, 32768).origin == "default");
  CHECK(tp.explain(Operation::all_reduce, -1).origin ==
        "default");  // no size: rules by size do not match
  CHECK(tp.explain(Operation::broadcast, -1).rule == "*.broadcast=mpi");
  CHECK_CONTAINS(tp.explain(Operation::barrier, 0).to_string(), ", by '*.");
  const RouteExplanation on_device = tp.explain(Operation::all_reduce, 8, MemoryKind::device);
  if (!mesh.device()) {
    CHECK(on_device.transport.empty());
    CHECK(on_device.skipped.size() == 1);
    CHECK(on_device.skipped[0].why == mesh.why_no_device());
  }
  mesh.close();
}

TEST_CASE("ranks with different routes throw MismatchError before the first collective") {
  NEEDS_RANKS(2);
  try {
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", {.routes = rank() == 1 ? "tp.all_reduce=mpi" : ""}};
    FAIL("opened");
  } catch (const MismatchError& error) {
    CHECK_CONTAINS(error.message(), "routes");
    CHECK_CONTAINS(error.message(), "tp.all_reduce=mpi; then the default rules");
  }
}

TEST_CASE("invalid routes throw the same error on every rank") {
  CHECK_THROWS_WITH_AS((Mesh{MPI_COMM_WORLD, "tp=auto", {.routes = "tp.all_reduce=ibv"}}),
                       doctest::Contains("position 14: unknown transport 'ibv'"), SpecError);
  CHECK_THROWS_AS((Mesh{MPI_COMM_WORLD, "tp=auto", {.routes = "dp.*=mpi"}}), SpecError);
}

TEST_CASE(
    "rules of a family apply to its duplicate communicators, not to dynamic groups of that name") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD,
            "tp=auto",
            {.names = {{"tp", {.duplicates = {"side"}}}}, .routes = "tp.barrier=mpi"}};
  std::vector<Rank> all;
  for (int r = 0; r < size(); ++r) all.emplace_back(r);
  const auto dynamic = mesh.new_group(all, "tp");
  CHECK(mesh.duplicate("tp", "side").explain(Operation::barrier, 0).rule == "tp.barrier=mpi");
  CHECK(dynamic->explain(Operation::barrier, 0).origin == "default");
  mesh.close();
}

// SPDX-License-Identifier: BSD-3-Clause
// Calls that MPI carries in a mesh that may survive lost ranks. They use copies of the memory.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/conformance/conformance.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;

namespace {

MeshOptions by_mpi() {
  return {.devices = DeviceUse::off, .routes = "*.*:host=mpi", .survive = Survival{}};
}

}  // namespace

TEST_CASE("the calls of a mesh that may survive are right") {
  NEEDS_AT_MOST_RANKS(8);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", by_mpi()};
  const auto report = conformance::check(mesh["dp"], {.types = {DataType::int32}, .share = 12});
  CHECK(report.failures == std::vector<std::string>{});
  mesh.close();
}

TEST_CASE("members may pass anything for memory that only the root has") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "dp=auto", by_mpi()};
  auto& dp = mesh["dp"];
  const auto n = static_cast<std::size_t>(size());
  const std::vector<std::int64_t> counts(n, 100'000);
  const std::vector<int> own(100'000, rank());
  std::vector<int> all(rank() == 0 ? n * own.size() : 1);  // a dummy elsewhere
  dp.gather_v(own, all, Blocks{counts}, 0);
  if (rank() == 0)
    for (std::size_t k = 0; k < n; ++k) CHECK(all[k * own.size()] == static_cast<int>(k));
  std::vector<int> back(own.size());
  dp.scatter_v(all, back, Blocks{counts}, 0);
  CHECK(back == own);
  mesh.close();
}

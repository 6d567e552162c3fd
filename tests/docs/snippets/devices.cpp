// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/devices.md. They need devices, or the CPU doubles.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

TEST_CASE("devices: all_reduce") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  int argc = 0;
  char** argv = nullptr;
  const std::size_t n = 100;
  // snippet: all_reduce
  CHECK(mesh.is_closed());
}

TEST_CASE("devices: redistribution") {
  SKIP_UNLESS(rankmesh_test::size() == 8, "needs 8 ranks");
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "world=8"};
  const std::size_t size_of_rows = 1024 * 1024, size_of_columns = 4096 * 128;
  const rankmesh::StreamRef stream{};
  // snippet: redistribution
  CHECK(served.download(stream).size() == size_of_columns);
  mesh.close();
}

TEST_CASE("devices: symmetric memory") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  const std::size_t n = 100;
  const rankmesh::StreamRef stream = mesh["tp"].stream();
  // snippet: symmetric
  CHECK(gradients.size() == n);
  mesh.close();
}

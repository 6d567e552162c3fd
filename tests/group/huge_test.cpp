// SPDX-License-Identifier: BSD-3-Clause
// More than 2^31 elements in one call. Needs about 4.5 GB per rank at 2 ranks;
// part of the long tests.
#include <doctest/doctest.h>

#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

TEST_CASE("2^31 + 9 elements are reduced, broadcast and sent") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::size_t n = (std::size_t{1} << 31) + 9;
  std::vector<std::int8_t> values(n, 1);
  values[n - 1] = 2;
  tp.all_reduce(values);
  CHECK(values[0] == tp.size());
  CHECK(values[n / 2] == tp.size());
  CHECK(values[n - 1] == 2 * tp.size());
  if (tp.is_first()) values[n - 2] = 77;
  tp.broadcast(values, 0);
  CHECK(values[n - 2] == 77);
  if (tp.is_first()) {
    values[n - 3] = 55;
    tp.send(values, next);
  } else if (tp.rank_in_group() == RankInGroup{1}) {
    tp.recv(values, prev);
    CHECK(values[n - 3] == 55);
  }
  values.resize(1);
  values.shrink_to_fit();
  mesh.close();
}

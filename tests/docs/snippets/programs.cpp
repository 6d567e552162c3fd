// SPDX-License-Identifier: BSD-3-Clause
// Around the snippets of docs/programs.md.
#include <rankmesh/rankmesh.hpp>

#include "support/checks.hpp"
#include "support/mpi_world.hpp"

namespace {
void compute() {}
void compute(int) {}
}  // namespace

#define main program
// snippet: run
#undef main

TEST_CASE("programs: plans without MPI") {
  // snippet: plan
  REQUIRE(place.has_value());
  CHECK(place->group == 4);
  CHECK(dp.group_count() == 8);
  CHECK(embd.group_size() == 2);
  CHECK(run.first == 32);
  CHECK(run.count == 8);
}

TEST_CASE("programs: asynchronous operations") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto,tp=1"};
  std::vector<float> gradients(8, 1);
  std::vector<float> partial(8, 1);
  // snippet: asynchronous
  CHECK(gradients[0] == static_cast<float>(mesh.size()));
  CHECK(partial.size() == 8);
  mesh.close();
}

TEST_CASE("programs: the operation that ends first") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  std::vector<std::vector<int>> sums(3, std::vector<int>(8, 1));
  const auto start_several = [&] {
    std::vector<rankmesh::Work> works;
    for (auto& sum : sums) works.push_back(mesh["dp"].all_reduce_async(std::span{sum}));
    return works;
  };
  std::size_t used = 0;
  const auto use = [&](std::size_t index) { used += index; };
  // snippet: wait_any
  CHECK(used == 0 + 1 + 2);
  CHECK(sums[2][7] == mesh.size());
  mesh.close();
}

TEST_CASE("programs: a receive that is cancelled") {
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  int next_request = -1;
  // snippet: cancel
  CHECK(next_request == -1);
  mesh.close();
}

TEST_CASE("programs: dynamic groups") {
  NEEDS_RANKS(2);
  rankmesh::Mesh mesh{MPI_COMM_WORLD, "dp=auto"};
  if (rankmesh_test::rank() < 2) {
    double loss = 1;
    // snippet: new_group
    CHECK(loss == 2);
  }
  mesh.close();
}

TEST_CASE("programs: rankmesh::run") {
  SKIP_UNLESS(rankmesh_test::size() == 4, "needs 4 ranks");
  char name[] = "program";
  char* arguments[] = {name, nullptr};
  CHECK(program(1, arguments) == 0);
}

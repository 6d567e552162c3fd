// SPDX-License-Identifier: BSD-3-Clause
// The wait for one of several operations.
#include <doctest/doctest.h>

#include <chrono>
#include <span>
#include <vector>

#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::size;
using rankmesh_test::thrown_by;

TEST_CASE("wait_any returns each operation once, in the order of their ends") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", MeshOptions{.check = false}};
  Mesh other{MPI_COMM_WORLD, "dp=auto", MeshOptions{.check = false}};
  auto& tp = mesh["tp"];
  CHECK(!wait_any({}));
  std::vector<Work> works(6);
  CHECK(!wait_any(works));
  std::vector<int> got(4, -1);
  const auto self = static_cast<int>(tp.rank_in_group().value());
  for (std::size_t i = 0; i < 4; ++i)
    works[i + 1] = (i % 2 == 0 ? tp : other["dp"])
                       .recv_async(std::span{&got[i], 1}, prev, static_cast<int>(i));
  for (const int i : {2, 3, 0, 1}) {
    (i % 2 == 0 ? tp : other["dp"]).send(std::vector{10 * self + i}, next, i);
    const auto index = wait_any(works, std::chrono::seconds{20});
    CHECK(index == static_cast<std::size_t>(i + 1));
    CHECK(got[static_cast<std::size_t>(i)] == 10 * ((self + size() - 1) % size()) + i);
    tp.barrier();
  }
  CHECK(!wait_any(works));
  other.close();
  mesh.close();
}

TEST_CASE("wait_any ends with the error of one operation, or after its time limit") {
  NEEDS_RANKS(2);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", MeshOptions{.check = false}};
  auto& tp = mesh["tp"];
  std::vector<int> first(1), second(1);
  std::vector<Work> works(2);
  works[0] = tp.recv_async(first, prev, 1);
  works[1] = tp.recv_async(second, prev, 2);
  tp.barrier();
  const auto error =
      thrown_by<TimeoutError>([&] { (void)wait_any(works, Deadline::Duration{0.3}); });
  CHECK_CONTAINS(error.message(), "wait_any of 2 operations: tp.recv from rank ");
  tp.barrier();
  tp.send(std::vector{1, 2}, next, 2);  // too long
  CHECK_CONTAINS(thrown_by<UsageError>([&] { (void)wait_any(works); }).message(), "received");
  works[1] = {};
  tp.barrier();
  tp.send(std::vector{5}, next, 1);
  CHECK(wait_any(works) == std::size_t{0});  // the group still works
  CHECK(first[0] == 5);
  mesh.close();
}

TEST_CASE("a wait_any that times out ends no wait_any of other members") {
  NEEDS_RANKS(3);
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", MeshOptions{.check = false}};
  auto& tp = mesh["tp"];
  std::vector<int> values(1 << 16, 1);
  int has_timed_out = 1;
  if (rankmesh_test::rank() == size() - 1)
    MPI_Recv(&has_timed_out, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<Work> works(1);
  works[0] = tp.all_reduce_async(std::span{values});
  if (rankmesh_test::rank() == 0) {
    const auto error =
        thrown_by<TimeoutError>([&] { (void)wait_any(works, Deadline::Duration{0.3}); });
    CHECK_CONTAINS(error.message(), "tp.all_reduce");
    MPI_Send(&has_timed_out, 1, MPI_INT, size() - 1, 0, MPI_COMM_WORLD);
  }
  CHECK(wait_any(works, std::chrono::seconds{20}) == std::size_t{0});
  CHECK(values[0] == size());
  mesh.close();
}

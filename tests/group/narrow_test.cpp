// SPDX-License-Identifier: BSD-3-Clause
// Reductions of 16- and 8-bit floats on the host: computed in float32, rounded once.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "rankmesh/base/narrow_float.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;

TEST_CASE("a narrow sum is rounded once, and the sum of an average does not overflow") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<float>(tp.size());
  // Rounded at each step, 256 + 1 + 1 + ... stays 256 in bfloat16.
  std::vector<BFloat16> values{BFloat16{tp.is_first() ? 256.0F : 1.0F}};
  tp.all_reduce(values);
  CHECK(values[0] == BFloat16{255.0F + n});
  std::vector<Float16> large{Float16{60000.0F}};
  tp.all_reduce(large, ReduceOp::avg);
  CHECK(large[0] == Float16{60000.0F});
  mesh.close();
}

TEST_CASE("an average of integers is the sum, divided and truncated toward zero") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::int32_t>(tp.size());
  // Sums of -(2n - 1), 2n - 1 and 0.
  const bool first = tp.is_first();
  std::vector<std::int32_t> values{first ? -(2 * n - 1) : 0, first ? 2 * n - 1 : 0,
                                   first ? n - 1 : -1};
  tp.all_reduce(values, ReduceOp::avg);
  CHECK(values == std::vector<std::int32_t>{-1, 1, 0});
  mesh.close();
}

TEST_CASE("an average at a root leaves the output of the others as it is") {
  for (const char* transport : {"mpi", "shm"}) {
    CAPTURE(transport);
    MeshOptions options;
    options.routes = std::string{"*.*:host="} + transport;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    auto& tp = mesh["tp"];
    const std::vector<std::int32_t> in(3, 6);
    std::vector<std::int32_t> out(3, 1000);
    tp.reduce(in, out, 0, ReduceOp::avg);
    CHECK(out == std::vector<std::int32_t>(3, tp.is_first() ? 6 : 1000));
    mesh.close();
  }
}

TEST_CASE("a batch can contain sums of narrow floats and other axes") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<BFloat16> values(3, BFloat16{1.5F});
  const std::vector<float> row{static_cast<float>(tp.rank_in_group().value()), 7};
  std::vector<float> whole(static_cast<std::size_t>(2 * tp.size()));
  NcclGroup together{mesh};
  auto sum = tp.all_reduce_async(values);
  auto columns = tp.all_gather_async(row, whole, Axis({2, 1}, 1));
  together.end();
  sum.wait();
  columns.wait();
  CHECK(static_cast<float>(values[2]) == 1.5F * static_cast<float>(tp.size()));
  CHECK(whole[static_cast<std::size_t>(tp.size() - 1)] == static_cast<float>(tp.size() - 1));
  CHECK(whole.back() == 7);
  mesh.close();
}

TEST_CASE("the error of a call on scratch memory names the call of the program") {
  NEEDS_RANKS(2);
  MeshOptions options;
  options.check = false;  // comparisons have always named it
  options.deadline = std::chrono::milliseconds{200};
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
  auto& tp = mesh["tp"];
  if (tp.is_first()) {
    std::vector<BFloat16> values(3);
    const auto error = rankmesh_test::thrown_by<TimeoutError>([&] { tp.all_reduce(values); });
    CHECK_CONTAINS(error.message(), "tp.all_reduce(3 x bfloat16, sum");
  }
  rankmesh_test::wait_for_all();
  mesh.abort();
}

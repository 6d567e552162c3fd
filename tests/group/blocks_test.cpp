// SPDX-License-Identifier: BSD-3-Clause
// Blocks of different sizes, against a plain reference.
#include <doctest/doctest.h>

#include <random>

#include "group/blocks_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using blocks_cases::check_forms;
using blocks_cases::index;
using blocks_cases::Values;
using rankmesh_test::size;

TEST_CASE("every form with blocks, blocking and not, with gaps and without") {
  Mesh mesh{MPI_COMM_WORLD,
            size() % 2 == 0 ? "dp=2,tp=auto ; all=dp*tp" : "dp=1,tp=auto ; all=dp*tp"};
  std::mt19937 random{5};
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    check_forms(mesh[round % 3 == 0   ? "dp"
                     : round % 3 == 1 ? "tp"
                                      : "all"],
                random, 40, round % 2 == 0);
  }
  mesh.close();
}

// Displacements are a matter of each member, so they must not decide which function of MPI is
// called: the members would call different ones.
TEST_CASE("the blocks of a reduction have gaps on some members only") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  const std::int64_t n = tp.size();
  const std::int64_t self = tp.rank_in_group().value();
  for (const bool is_async : {false, true}) {
    std::vector<std::int64_t> counts, displacements;
    std::int64_t end = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      counts.push_back(k + 1);
      displacements.push_back(end);
      end += k + 1 + (self % 2 == 1 ? 2 : 0);
    }
    const Blocks blocks{counts, displacements};
    Values in(index(end), 100);
    for (std::int64_t k = 0; k < n; ++k)
      for (std::int64_t i = 0; i < counts[index(k)]; ++i)
        in[index(displacements[index(k)] + i)] = static_cast<std::int32_t>(k * 10 + i);
    Values out(index(self + 1), -1);
    if (is_async)
      tp.reduce_scatter_v_async(in, out, blocks).wait();
    else
      tp.reduce_scatter_v(in, out, blocks);
    for (std::int64_t i = 0; i <= self; ++i)
      CHECK(out[index(i)] == static_cast<std::int32_t>(n * (self * 10 + i)));
  }
  mesh.close();
}

TEST_CASE("invalid blocks throw UsageError") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
  auto& tp = mesh["tp"];
  std::vector<std::int64_t> counts(index(tp.size()), 2);
  Values in(2);
  Values out(index(2 * tp.size()));
  tp.all_gather_v(in, out, counts);
  Values small(index(2 * tp.size() - 1));
  CHECK_THROWS_WITH_AS(tp.all_gather_v(in, small, counts), doctest::Contains("lies outside"),
                       UsageError);
  if (tp.size() > 1) CHECK_THROWS_AS(tp.all_gather_v(out, out, counts), UsageError);
  if (tp.size() > 1) {
    counts.back() = -1;
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("has -1 elements"),
                         UsageError);
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("tp.all_gather_v on"),
                         UsageError);
    counts.back() = 2;
    // No element of the output may belong to two blocks; empty blocks may lie anywhere.
    std::vector<std::int64_t> displacements(counts.size());
    for (std::size_t k = 0; k < counts.size(); ++k)
      displacements[k] = 2 * (std::ssize(counts) - 1) - 2 * static_cast<std::int64_t>(k);
    tp.all_gather_v(in, out, Blocks{counts, displacements});
    displacements.back() = 1;
    CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, Blocks{counts, displacements}),
                         doctest::Contains("of out overlap"), UsageError);
    if (tp.is_first())
      CHECK_THROWS_WITH_AS(tp.gather_v(in, out, Blocks{counts, displacements}, 0),
                           doctest::Contains("of out overlap"), UsageError);
  }
  counts.push_back(1);
  CHECK_THROWS_WITH_AS(tp.all_gather_v(in, out, counts), doctest::Contains("counts and"),
                       UsageError);
  mesh.close();
}

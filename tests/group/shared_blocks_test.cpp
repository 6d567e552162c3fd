// SPDX-License-Identifier: BSD-3-Clause
// Blocks of different sizes in shared memory.
#include <doctest/doctest.h>

#include <random>

#include "group/blocks_cases.hpp"
#include "group/shared_cases.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using blocks_cases::check_forms;
using blocks_cases::index;
using blocks_cases::laid_out;
using blocks_cases::message;
using blocks_cases::Values;
using shared_cases::layout;
using shared_cases::names;
using shared_cases::routed;
using shared_cases::size;

TEST_CASE("v-forms in shared memory: random blocks that take one step, or many") {
  Mesh mesh{MPI_COMM_WORLD, layout(), routed("*.*:host=shm")};
  std::mt19937 random{17};
  for (const std::string& name : names(mesh)) {
    CAPTURE(name);
    for (int round = 0; round < 12; ++round) {
      CAPTURE(round);
      const unsigned largest = round % 6 == 5 && size() <= 8 ? 60000 : round % 3 == 2 ? 4000 : 20;
      // In the last rounds, only some members use the forms with _async.
      check_forms(mesh[name], random, largest,
                  round < 9 ? round % 2 == 0 : mesh.rank().value() % 2 == 0);
    }
  }
  mesh.close();
}

// The first v-form tells only in its first step how many steps the second operation must wait for.
TEST_CASE("asynchronous v-forms of unknown length, with other operations behind them") {
  Mesh mesh{MPI_COMM_WORLD, "tp=auto", routed("*.*:host=shm")};
  auto& tp = mesh["tp"];
  const auto n = static_cast<std::size_t>(tp.size());
  const std::int64_t self = tp.rank_in_group().value();
  for (const std::int64_t largest : {1, 50000}) {
    std::vector<std::int64_t> counts(n, 1);
    counts.front() = largest;
    const Blocks blocks{counts};
    const auto whole = laid_out(blocks, largest + tp.size() - 1,
                                [&](std::int64_t k) { return message(k, 0, counts[index(k)]); });
    Values out(whole.size()), at_root(whole.size()), mine(index(counts[index(self)]));
    std::vector<std::int64_t> ones{1};
    Work gathered = tp.all_gather_v_async(message(self, 0, counts[index(self)]), out, blocks);
    Work reduced = tp.all_reduce_async(ones);
    Work collected = tp.gather_v_async(message(self, 0, counts[index(self)]), at_root, blocks, 0);
    Work scattered = tp.scatter_v_async(whole, mine, blocks, tp.size() - 1);
    tp.barrier();
    scattered.wait();
    collected.wait();
    reduced.wait();
    gathered.wait();
    CHECK(out == whole);
    CHECK(ones[0] == tp.size());
    if (tp.is_first()) CHECK(at_root == whole);
    CHECK(mine == message(self, 0, counts[index(self)]));
  }
  mesh.close();
}

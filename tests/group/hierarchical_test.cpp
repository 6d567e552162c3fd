// SPDX-License-Identifier: BSD-3-Clause
// Collectives on two levels: shared memory inside the nodes and messages between them. Run on
// emulated hosts (tests/hosts/hierarchical); elsewhere the cases are skipped.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "group/conformance.hpp"
#include "group/two_levels.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::rank;
using rankmesh_test::size;
using rankmesh_test::spans_levels;
using rankmesh_test::two_levels;

namespace {

// Groups of all ranks, of a part of them, and in an order that has nothing to do with the nodes.
MeshSpec many_groups() {
  const int n = size();
  std::string text = "mesh = \"dp=1,tp=auto\"\n[groups]\n";
  const auto add = [&](const char* name, const std::vector<int>& ranks) {
    if (ranks.size() < 2) return;
    text += std::string{name} + " = [[";
    for (const int r : ranks) text += std::to_string(r) + (r == ranks.back() ? "]]\n" : ", ");
  };
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  add("backward", {all.rbegin(), all.rend()});
  add("without_0", {all.begin() + 1, all.end()});
  std::vector<int> mixed = all;
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937{5});
  add("mixed", mixed);
  if (n > 4) add("some", {mixed.begin(), mixed.begin() + n - 2});
  return MeshSpec::parse_toml(text, "test");
}

bool is_hierarchical(const GroupCoordinator& group) {
  return group.explain(Operation::all_reduce, 8).transport == "hierarchical";
}

}  // namespace

TEST_CASE("two levels: the table of conformance, to the bit, with and without a deadline") {
  for (const double deadline : {0.0, 30.0}) {
    CAPTURE(deadline);
    Mesh mesh{MPI_COMM_WORLD, many_groups(), two_levels(deadline)};
    SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
    CAPTURE(mesh["tp"].explain(Operation::all_reduce, 8).to_string());
    CHECK(is_hierarchical(mesh["tp"]));
    int turn = 0;
    for (const GroupFamily& family : mesh.plan().families()) {
      ++turn;  // also on ranks that are no members
      // Some groups may lie inside one node.
      if (!family.find(mesh.rank()) || !is_hierarchical(mesh[family.name()])) continue;
      rankmesh_test::Conformance table;
      table.counts = {0, 1, 2, 13, 257, 1001, 6007, 150'001};
      table.share = 120;
      table.turn = turn + (deadline > 0 ? 60 : 0);
      table.order = rankmesh_test::by_nodes(mesh, mesh[family.name()]);
      check_conformance(mesh[family.name()], table);
    }
  }
}

TEST_CASE("two levels: calls of several groups are in flight at once, and end in any order") {
  Mesh mesh{MPI_COMM_WORLD, many_groups(), two_levels()};
  SKIP_UNLESS(spans_levels(mesh), "needs several nodes, and two ranks on one of them");
  struct InFlight {
    Work work;
    std::vector<std::int64_t> values, expected;
  };
  std::mt19937 same{3};
  std::mt19937 own{static_cast<unsigned>(rank())};
  const std::size_t sizes[] = {0, 1, 13, 257, 1001, 6007};
  for (int round = 0; round < 6; ++round) {
    std::deque<InFlight> calls;
    for (std::int64_t i = 0; i < 8; ++i) {
      GroupCoordinator& group = mesh[same() % 2 == 0 ? "tp" : "backward"];
      const std::size_t count = i == 0 ? 150'001 : sizes[same() % std::size(sizes)];
      const std::int64_t n = group.size(), root = static_cast<std::int64_t>(same()) % n;
      const std::int64_t mine = group.rank_in_group().value() + i;
      InFlight& call = calls.emplace_back();
      call.values.assign(count, mine);
      switch (same() % 3) {
        case 0:
          call.expected.assign(count, n * (n - 1) / 2 + n * i);
          call.work = group.all_reduce_async(call.values);
          break;
        case 1:
          call.expected.assign(count, root + i);
          call.work = group.broadcast_async(call.values, root);
          break;
        default:
          call.expected.assign(count, group.is_first() ? n * (n - 1) / 2 + n * i : mine);
          call.work = group.reduce_async(call.values, 0);
      }
    }
    if (round % 2 == 0) mesh["mixed"].barrier();  // the others go on meanwhile
    std::vector<std::size_t> order(calls.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), own);
    for (const std::size_t i : order) calls[i].work.wait();
    for (const InFlight& call : calls) CHECK(call.values == call.expected);
  }
}

// SPDX-License-Identifier: BSD-3-Clause
// Random pairs of places: the result equals that of gathering the tensor and slicing it.
#include <doctest/doctest.h>

#include <cstdlib>

#include "machine/read_machine.hpp"
#include "support/iterations.hpp"
#include "transfer/carry_out.hpp"
#include "transfer/greatest_flow.hpp"

using rankmesh::Machine;
using rankmesh::plan_transfer;
using rankmesh::Rank;
using rankmesh::TensorPlacement;
using rankmesh::TransferOptions;
using rankmesh::TransferPlan;
using rankmesh_test::pick;

namespace {

// Checks one plan against the elements that every rank must get, and against the lower bound.
void check_plan(const TransferPlan& plan) {
  auto memory = rankmesh_test::filled(plan.tensors().front().from);
  const std::string wrong = rankmesh_test::carry_out(plan, memory);
  if (!wrong.empty()) FAIL(wrong);
  const auto volume = plan.volume();
  REQUIRE(volume.moved_bytes == volume.least_moved_bytes);
  REQUIRE(volume.between_nodes_bytes >= volume.least_between_nodes_bytes);
}

// Without sums, the lower bound is what each rank needs and does not have.
void check_bound(const TransferPlan& plan) {
  const auto& move = plan.tensors().front();
  if (!move.from.sums().empty()) return;
  std::int64_t least = 0;
  for (const Rank rank : move.to.ranks().to_vector())
    least += move.to.local_count(rank) - common_elements(move.from, rank, move.to, rank);
  REQUIRE(plan.volume().moved_bytes == 4 * least);
}

struct Pair {
  TensorPlacement from, to;
};

Pair random_pair(rankmesh_test::Random& random) {
  rankmesh_test::RandomPlaces places{random};
  const std::string from = places.place(true, true);
  const std::string to = places.place(false, false);
  CAPTURE(from);
  CAPTURE(to);
  return {TensorPlacement::parse(from), TensorPlacement::parse(to)};
}

// The number of pairs; RANKMESH_TEST_PAIRS replaces it in long runs.
int pair_count(int usual) {
  const char* const given = std::getenv("RANKMESH_TEST_PAIRS");
  return given != nullptr ? std::atoi(given) : rankmesh_test::iterations(usual, 1);
}

}  // namespace

TEST_CASE("random pairs of places equal gather and slice") {
  rankmesh_test::Random random{20'261};
  const int pairs = pair_count(1'500);
  for (int i = 0; i < pairs; ++i) {
    const Pair pair = random_pair(random);
    CAPTURE(i);
    CAPTURE(pair.from.to_string());
    CAPTURE(pair.to.to_string());
    REQUIRE(TensorPlacement::parse(pair.from.to_string()).to_string() == pair.from.to_string());
    REQUIRE(TensorPlacement::parse(pair.to.to_string()) == pair.to);
    if (i % 2 == 0) {
      const TransferPlan plan = plan_transfer(pair.from, pair.to);
      check_plan(plan);
      check_bound(plan);
      continue;
    }
    const Machine machine =
        rankmesh::MachineReader{}.machine({.ranks_per_node = pick(random, 1, 5), .world_size = 64});
    const TransferOptions options{.fan_out = pick(random, 0, 2) > 0};
    const TransferPlan plan = plan_transfer(pair.from, pair.to, &machine, options);
    check_plan(plan);
    check_bound(plan);
    if (options.fan_out && pair.from.sums().empty()) {
      const auto volume = plan.volume();
      REQUIRE(volume.between_nodes_bytes == volume.least_between_nodes_bytes);
    }
  }
}

// Where no rank has elements with different replicas, the plan is optimal. Elsewhere it levels by
// turns, which may miss the optimum by an element.
TEST_CASE("the busiest sender compared with the greatest flow") {
  rankmesh_test::Random random{417};
  const int pairs = pair_count(1'000);
  int optimal = 0;
  double worst = 1;
  for (int i = 0; i < pairs;) {
    const Pair pair = random_pair(random);
    if (!pair.from.sums().empty()) continue;
    ++i;
    const std::string from = pair.from.to_string();
    CAPTURE(from);
    CAPTURE(pair.to.to_string());
    const std::int64_t sent = plan_transfer(pair.from, pair.to).volume().most_sent_bytes / 4;
    const std::int64_t least = rankmesh_test::least_most_sent({pair.from, pair.to});
    REQUIRE(sent >= least);
    const bool is_even =
        from.find('+') == std::string::npos && from.find("lists") == std::string::npos;
    REQUIRE(2 * sent <= (is_even ? 2 : 3) * least);
    optimal += sent == least ? 1 : 0;
    if (sent > least)
      worst = std::max(worst, static_cast<double>(sent) / static_cast<double>(least));
  }
  CHECK(optimal >= pairs - pairs / 100);
  if (std::getenv("RANKMESH_TEST_PAIRS") != nullptr)
    MESSAGE(optimal << " of " << pairs << " are optimal; the greatest ratio is " << worst);
}

// SPDX-License-Identifier: BSD-3-Clause
// Plans whose sources are partly lost: every element comes from a living rank that has it or a copy
// of it, and no element moves that need not.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "support/checks.hpp"
#include "support/iterations.hpp"
#include "transfer/carry_out.hpp"
#include "transfer/detail/copies.hpp"
#include "transfer/greatest_flow.hpp"

using rankmesh::LostElements;
using rankmesh::Rank;
using rankmesh::TensorPlacement;
using rankmesh::TensorTransfer;
using rankmesh::TransferPlan;
using rankmesh::UsageError;
using rankmesh::detail::FailureDomains;
using rankmesh::detail::renumbered;
using rankmesh_test::pick;
using rankmesh_test::thrown_by;

namespace {

constexpr std::int64_t gone = 100;  // the numbers of lost ranks begin here

// A transfer after a loss.
struct Loss {
  TensorTransfer move;
  std::vector<Rank> lost;
};

// Random places, of which some ranks are lost. Half of the sources have copies.
Loss random_loss(rankmesh_test::Random& random) {
  rankmesh_test::RandomPlaces places{random};
  TensorPlacement from = TensorPlacement::parse(places.place(false, true));
  const TensorPlacement to = TensorPlacement::parse(places.place(false, false));
  constexpr std::int64_t ranks = 64;  // more than any place has
  std::vector<bool> is_lost(static_cast<std::size_t>(ranks));
  Loss loss{{from, to}, {}};
  for (std::int64_t r = 0; r < ranks; ++r)
    if (pick(random, 0, 3) == 0) {
      is_lost[static_cast<std::size_t>(r)] = true;
      loss.lost.emplace_back(gone + r);
    }
  const auto now = [&](std::int64_t rank) {
    return is_lost[static_cast<std::size_t>(rank)] ? gone + rank : rank;
  };
  if (pick(random, 0, 1) == 0) {
    const std::int64_t distance = pick(random, 1, ranks);
    loss.move.copy =
        renumbered(from, [&](std::int64_t rank) { return now((rank + distance) % ranks); });
  }
  loss.move.from = renumbered(from, now);
  return loss;
}

// The elements of a rank, followed by its copies.
rankmesh_test::Memory memory_of(const TensorTransfer& move) {
  rankmesh_test::Memory memory = rankmesh_test::filled(move.from);
  if (move.copy)
    for (auto& [rank, elements] : rankmesh_test::filled(*move.copy))
      memory[rank].insert(memory[rank].end(), elements.begin(), elements.end());
  return memory;
}

}  // namespace

TEST_CASE("random losses: elements come from living ranks, and only those move that must") {
  rankmesh_test::Random random{37};
  int lost = 0, optimal = 0;
  const int losses = rankmesh_test::iterations(1'500, 1);
  for (int i = 0; i < losses; ++i) {
    const Loss loss = random_loss(random);
    CAPTURE(i);
    CAPTURE(loss.move.from.to_string());
    CAPTURE(loss.move.to.to_string());
    const auto needs = rankmesh_test::needs_of(loss.move, loss.lost);
    const auto plan_it = [&] {
      return plan_transfer(std::vector{loss.move}, nullptr, {.fan_out = true, .lost = loss.lost});
    };
    if (needs.contains({})) {
      ++lost;
      CHECK_THROWS_AS(plan_it(), LostElements);
      continue;
    }
    const TransferPlan plan = plan_it();
    CHECK(plan.world_size() < gone);
    auto memory = memory_of(loss.move);
    for (const Rank rank : loss.lost) memory.erase(rank.value());
    const std::string wrong = rankmesh_test::carry_out(plan, memory);
    if (!wrong.empty()) FAIL(wrong);
    std::int64_t least = 0;
    for (const auto& [holders, count] : needs) least += count;
    const auto volume = plan.volume();
    REQUIRE(volume.moved_bytes == 4 * least);
    REQUIRE(volume.least_moved_bytes == 4 * least);
    const std::int64_t most = rankmesh_test::least_most_sent(loss.move, loss.lost);
    REQUIRE(volume.most_sent_bytes <= 4 * 3 * most);
    optimal += volume.most_sent_bytes <= 4 * std::max<std::int64_t>(most, 0) ? 1 : 0;
  }
  CHECK(lost > losses / 20);
  CHECK(lost < losses / 2);
  CHECK(optimal >= losses - lost - losses / 50);
}

TEST_CASE("the error of lost elements names the first one and the ranks that had it") {
  const auto from = TensorPlacement::parse("[8] f32 @ dp=4 on 0,9,2,3 : (dp)");
  const auto to = TensorPlacement::parse("[8] f32 @ dp=3 : (dp)");
  const auto plan = [&](std::vector<TensorTransfer> moves) {
    return plan_transfer(std::move(moves), nullptr, {.fan_out = true, .lost = {Rank{9}}});
  };
  try {
    (void)plan({{from, to, "m"}});
    FAIL("nothing was thrown");
  } catch (const LostElements& error) {
    CHECK(error.tensor() == "m");
    CHECK(error.index() == std::vector<std::int64_t>{2});
    CHECK(error.holders() == std::vector{Rank{9}});
    CHECK_CONTAINS(error.message(), "the element [2] was on rank 9, and no rank has it any more");
  }
  TensorTransfer copied{from, to, "m", renumbered(from, [](std::int64_t rank) {
                          return rank == 9 ? 2 : rank == 2 ? 3 : rank == 3 ? 0 : 9;
                        })};
  const TransferPlan from_copy = plan({copied});
  CHECK(from_copy.world_size() == 4);
  CHECK_CONTAINS(from_copy.explain(0, std::vector<std::int64_t>{2}), "before: rank 2 (offset 2)");
  CHECK(from_copy.digest() != plan_transfer(std::vector{copied}).digest());

  CHECK_CONTAINS(thrown_by<UsageError>([&] {
                   (void)plan({{to, from}});
                 }).message(),
                 "would be on rank 9 after the transfer, which is lost");
  copied.copy = to;
  CHECK_CONTAINS(thrown_by<UsageError>([&] { (void)plan({copied}); }).message(),
                 "are not copies of");
}

TEST_CASE("copies are in another replica, and on another node") {
  using rankmesh::detail::distance_of_copies;
  struct Row {
    FailureDomains domains;
    std::int64_t distance;
  };
  const std::vector<std::int64_t> one(8, 0), halves{0, 0, 0, 0, 1, 1, 1, 1},
      pairs{0, 0, 1, 1, 2, 2, 3, 3}, turns{0, 1, 0, 1, 0, 1, 0, 1}, each{0, 1, 2, 3, 4, 5, 6, 7};
  for (const Row& row : std::vector<Row>{{{{0}, {0}}, 0},
                                         {{one, one}, 1},
                                         {{each, one}, 1},
                                         {{pairs, one}, 2},
                                         {{each, pairs}, 2},
                                         {{each, halves}, 4},
                                         {{pairs, halves}, 4},
                                         {{turns, one}, 1},
                                         {{turns, pairs}, 3},
                                         {{each, {0, 0, 0, 0, 0, 0, 1, 1}}, 2}})
    CHECK(distance_of_copies(row.domains) == row.distance);
}

TEST_CASE("only elements whose ranks may all be lost at once need copies") {
  using rankmesh::detail::needs_copies;
  const auto needs = [](const char* place, FailureDomains domains) {
    return needs_copies(TensorPlacement::parse(place), domains);
  };
  const FailureDomains alone{{0, 1, 2, 3}, {0, 0, 0, 0}};
  CHECK(needs("[8] f32 @ dp=4 : (dp)", alone));
  CHECK_FALSE(needs("[8] f32 @ dp=4 : (_)", alone));
  CHECK(needs("[8] f32 @ dp=4 : (dp:lists(0-3; 0-3; 4-6; 4-7))", alone));
  CHECK_FALSE(needs("[8] f32 @ dp=4 : (dp:lists(0-3; 0-3; 4-7; 4-7))", alone));
  CHECK_FALSE(needs("[8] f32 @ dp=1 : (dp)", {{0}, {0}}));
  CHECK(needs("[8] f32 @ dp=2,tp=2 : (dp)", {{0, 0, 1, 1}, {0, 0, 0, 0}}));
  CHECK_FALSE(needs("[8] f32 @ dp=2,tp=2 : (tp)", {{0, 0, 1, 1}, {0, 0, 0, 0}}));
  CHECK(needs("[8] f32 @ dp=2,tp=2 : (tp)", {{0, 0, 1, 1}, {0, 1, 0, 1}}));
  CHECK_FALSE(needs("[8] f32 @ dp=2,tp=2 : (tp)", {{0, 0, 1, 1}, {0, 0, 1, 1}}));
}

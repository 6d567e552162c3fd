// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/shrink.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>

#include "place/diff.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/role.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using namespace rankmesh;

namespace {

MeshPlan whole_plan(const std::string& mesh) { return MeshSpec::parse_string(mesh).plan(); }

// The coordinates of a rank without those that count replicas.
std::vector<std::pair<std::string, std::int64_t>> held_by(const MeshPlan& plan, std::int64_t rank) {
  std::vector<std::pair<std::string, std::int64_t>> part;
  for (const auto& [name, coordinate] : plan.coordinates(rank))
    if (role_of(name) != FamilyRole::data) part.emplace_back(name, coordinate.value());
  return part;
}

// Every place of the new mesh has one survivor, which held the same part before.
void require_places(const MeshPlan& before, const Shrunk& after, std::span<const Rank> lost) {
  REQUIRE(after.plan.has_value());
  std::set<std::int64_t> taken;
  for (std::size_t r = 0; r < after.new_rank.size(); ++r) {
    const std::int64_t place = after.new_rank[r];
    if (place < 0) continue;
    const bool is_lost = std::ranges::any_of(
        lost, [&](Rank rank) { return rank.value() == static_cast<std::int64_t>(r); });
    CHECK(!is_lost);
    CHECK(taken.insert(place).second);
    if (static_cast<std::int64_t>(r) < before.world_size())
      CHECK(held_by(before, static_cast<std::int64_t>(r)) == held_by(*after.plan, place));
  }
  CHECK(static_cast<std::int64_t>(taken.size()) == after.plan->world_size());
  CHECK(static_cast<std::int64_t>(after.idle.size() + lost.size() + taken.size()) ==
        static_cast<std::int64_t>(after.new_rank.size()));
}

}  // namespace

TEST_CASE("a replica that lost a rank is dropped") {
  const MeshPlan plan = whole_plan("pp=2,dp=3,tp=2");
  const std::vector<Rank> lost{2};
  const Shrunk after = shrink(plan, lost);
  require_places(plan, after, lost);
  CHECK(after.plan->digest() == whole_plan("pp=2,dp=2,tp=2").digest());
  CHECK(after.new_rank == std::vector<std::int64_t>{0, 1, -1, -1, 2, 3, 4, 5, -1, -1, 6, 7});
  CHECK(after.idle == std::vector<std::int64_t>{3, 8, 9});
  CHECK(after.copies_before == 3);
  CHECK(after.copies_after == 2);
  REQUIRE(after.lost.size() == 1);
  CHECK(after.lost[0].coordinates == "pp=0,dp=1,tp=0");
  CHECK(after.lost[0].part == "pp=0,tp=0");
  CHECK(after.lost[0].copies_left == 2);
  CHECK(after.fatal.empty());
}

TEST_CASE("survivors of different replicas are put together") {
  const MeshPlan plan = whole_plan("pp=2,dp=3,tp=2");
  const std::vector<Rank> lost{0, 8};  // pp=0,dp=0 and pp=1,dp=1
  CHECK(shrink(plan, lost).copies_after == 1);
  const Shrunk after = shrink(plan, lost, ShrinkPolicy::compact);
  require_places(plan, after, lost);
  CHECK(after.copies_after == 2);
  CHECK(after.plan->digest() == whole_plan("pp=2,dp=2,tp=2").digest());
  CHECK(after.idle.size() == 2);  // the survivors of one replica of each part that lost none
}

TEST_CASE("spare ranks take the places of lost ones") {
  const MeshPlan plan = whole_plan("dp=2,tp=3");
  const std::vector<Rank> lost{4, 1};
  const Shrunk after = shrink(plan, lost, ShrinkPolicy::spare, 3);
  require_places(plan, after, lost);
  CHECK(after.new_rank == std::vector<std::int64_t>{0, -1, 2, 3, -1, 5, 1, 4, -1});
  CHECK(after.idle == std::vector<std::int64_t>{8});
  CHECK(after.plan->digest() == plan.digest());
  CHECK_THROWS_AS(shrink(plan, lost, ShrinkPolicy::spare, 1), UsageError);
  const std::vector<Rank> with_spares{4, 6, 1, 8};
  CHECK(shrink(plan, with_spares, ShrinkPolicy::spare, 4).new_rank ==
        std::vector<std::int64_t>{0, -1, 2, 3, -1, 5, -1, 1, -1, 4});
  CHECK_THROWS_AS(shrink(plan, with_spares, ShrinkPolicy::spare, 3), UsageError);
}

TEST_CASE("the loss of all copies of a part is fatal") {
  const MeshPlan plan = whole_plan("pp=2,dp=2,tp=2");
  const std::vector<Rank> lost{1, 3};
  for (const auto policy : {ShrinkPolicy::drop_replica, ShrinkPolicy::compact}) {
    const Shrunk after = shrink(plan, lost, policy);
    CHECK(after.fatal == std::vector<std::string>{"pp=0,tp=1"});
    CHECK(!after.plan);
  }
  // Each replica lost a rank, but every part has a copy.
  const std::vector<Rank> different{0, 3};
  CHECK(!shrink(plan, different).plan);
  CHECK(shrink(plan, different).fatal.empty());
  CHECK(shrink(plan, different, ShrinkPolicy::compact).plan->world_size() == 4);
  // Shards are no replicas.
  const std::vector<Rank> first{0};
  CHECK(shrink(whole_plan("fsdp=4"), first).fatal == std::vector<std::string>{"fsdp=0"});
  CHECK(shrink(whole_plan("dp_replicate=2,fsdp=4"), first).plan->world_size() == 4);
}

TEST_CASE("two views are shrunk together") {
  // A replica of experts spans two of dp, so two are dropped.
  const MeshPlan plan = whole_plan("pp=2,dp=4,tp=2 | pp=2,edp=2,ep=4");
  const std::vector<Rank> lost{5};
  const Shrunk after = shrink(plan, lost);
  require_places(plan, after, lost);
  CHECK(after.plan->digest() == whole_plan("pp=2,dp=2,tp=2 | pp=2,edp=1,ep=4").digest());
  CHECK(after.idle.size() == 7);
}

TEST_CASE("the dimension for replicas that keeps all parts is shrunk") {
  const MeshPlan plan = whole_plan("pp=2,dp=6 | external_dp=2,ep=3,edp=2");
  const std::vector<Rank> lost{0};
  const Shrunk after = shrink(plan, lost);
  require_places(plan, after, lost);
  CHECK(after.plan->digest() == whole_plan("pp=2,dp=3 | external_dp=2,ep=3,edp=1").digest());
  CHECK(after.new_rank == std::vector<std::int64_t>{-1, 0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5});
}

TEST_CASE("several dimensions for replicas are shrunk together") {
  const MeshPlan plan = whole_plan("dp_replicate=2,dp=2,tp=2");
  const std::vector<Rank> lost{0, 2, 4};
  const Shrunk after = shrink(plan, lost);
  require_places(plan, after, lost);
  CHECK(after.plan->digest() == whole_plan("dp_replicate=1,dp=1,tp=2").digest());
  // No sizes up to 2 have the product 3.
  const std::vector<Rank> one{0};
  CHECK_THROWS_AS(shrink(plan, one), UsageError);
}

TEST_CASE("drop-replica keeps the members of listed groups that remain") {
  const MeshPlan plan = whole_plan("megatron:tp=1,world_size=4,num_dist_opt=2");
  const std::vector<Rank> lost{3};
  const Shrunk after = shrink(plan, lost);
  require_places(plan, after, lost);
  const GroupFamily& family = after.plan->groups("intra_dp_cp");
  REQUIRE(family.group_count() == 2);
  CHECK(family.group(0).to_string() == "0-1");
  CHECK(family.group(1).to_string() == "2");
}

TEST_CASE("a mesh in the reversed order of its ranks is shrunk") {
  const MeshPlan plan =
      MeshSpec::parse_toml("mesh = 'dp=2,tp=2'\nrank_order = [3, 2, 1, 0]", "x.toml").plan();
  for (const auto policy : {ShrinkPolicy::drop_replica, ShrinkPolicy::compact}) {
    const std::vector<Rank> lost{0};  // dp=1,tp=1
    const Shrunk after = shrink(plan, lost, policy);
    require_places(plan, after, lost);
    CHECK(after.new_rank == std::vector<std::int64_t>{-1, -1, 0, 1});
    CHECK(after.plan->groups("tp").group(0).to_vector() == std::vector<Rank>{1, 0});
  }
}

TEST_CASE("presets are shrunk, and equal the preset of the smaller world") {
  for (const auto& [mesh, smaller, rank] :
       std::vector<std::tuple<std::string, std::string, std::int64_t>>{
           {"megatron:tp=2,pp=2,world_size=24", "megatron:tp=2,pp=2,world_size=20", 7},
           {"llama3:dp=3,pp=2,cp=1,tp=2", "llama3:dp=2,pp=2,cp=1,tp=2", 11}}) {
    CAPTURE(mesh);
    const MeshPlan plan = whole_plan(mesh);
    const std::vector<Rank> lost{rank};
    const Shrunk after = shrink(plan, lost);
    require_places(plan, after, lost);
    CHECK(diff(*after.plan, whole_plan(smaller)).is_empty());
  }
}

TEST_CASE("random losses: compact keeps no fewer replicas than drop-replica") {
  std::mt19937_64 random{19};
  for (const std::string mesh : {"pp=2,dp=5,tp=3", "dp=7", "tp=2,dp=4,pp=3", "cp=2,dp=3,tp=2"}) {
    const MeshPlan plan = whole_plan(mesh);
    for (int i = 0; i < 25; ++i) {
      std::vector<Rank> ranks;
      for (std::int64_t r = 0; r < plan.world_size(); ++r) ranks.emplace_back(r);
      std::ranges::shuffle(ranks, random);
      const std::span<const Rank> lost{ranks.data(), random() % 4 + 1};
      const Shrunk dropped = shrink(plan, lost);
      const Shrunk compact = shrink(plan, lost, ShrinkPolicy::compact);
      CHECK(compact.copies_after >= dropped.copies_after);
      CHECK(compact.plan.has_value() == compact.fatal.empty());
      if (dropped.plan) require_places(plan, dropped, lost);
      if (compact.plan) require_places(plan, compact, lost);
    }
  }
}

TEST_CASE("a mesh that permutes its ranks is shrunk like one that does not") {
  std::mt19937_64 random{7};
  for (const std::string mesh :
       {"pp=2,dp=3,tp=2", "dp=4,tp=2", "pp=2,dp=4,tp=2 | pp=2,edp=2,ep=4", "tp=3,dp=3;all=tp*dp"}) {
    CAPTURE(mesh);
    const MeshPlan plain = whole_plan(mesh);
    for (int i = 0; i < 20; ++i) {
      std::vector<std::int64_t> order(static_cast<std::size_t>(plain.world_size()));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::shuffle(order, random);
      std::string text = "mesh = '" + mesh + "'\nrank_order = [";
      for (const std::int64_t rank : order) text += std::to_string(rank) + ", ";
      const MeshPlan permuted = MeshSpec::parse_toml(text + "]", "x.toml").plan();
      std::vector<Rank> lost_plain, lost;
      for (std::size_t p = random() % 3; p < order.size(); p += 5) {
        lost_plain.emplace_back(static_cast<std::int64_t>(p));
        lost.emplace_back(order[p]);
      }
      for (const auto policy : {ShrinkPolicy::drop_replica, ShrinkPolicy::compact}) {
        const Shrunk wanted = shrink(plain, lost_plain, policy);
        const Shrunk after = shrink(permuted, lost, policy);
        REQUIRE(after.plan.has_value() == wanted.plan.has_value());
        CHECK(after.fatal.size() == wanted.fatal.size());
        if (!after.plan) continue;
        require_places(permuted, after, lost);
        std::int64_t last = -1;  // the survivors keep their order in the world
        for (const std::int64_t rank : after.new_rank) {
          CHECK((rank < 0 || rank > last));
          last = std::max(last, rank);
        }
        for (std::size_t p = 0; p < order.size(); ++p) {
          const std::int64_t place = wanted.new_rank[p];
          const std::int64_t rank = after.new_rank[static_cast<std::size_t>(order[p])];
          REQUIRE((place < 0) == (rank < 0));
          if (place < 0) continue;
          CHECK(after.plan->coordinates(rank) == wanted.plan->coordinates(place));
          for (const GroupFamily& family : wanted.plan->families())
            CHECK(after.plan->groups(family.name()).find(rank) == family.find(place));
        }
      }
    }
  }
}

TEST_CASE("a wrong loss is refused") {
  const MeshPlan plan = whole_plan("dp=2,tp=2");
  const std::vector<Rank> twice{1, 1};
  const std::vector<Rank> outside{4};
  CHECK_THROWS_AS(shrink(plan, twice), UsageError);
  CHECK_THROWS_AS(shrink(plan, outside), UsageError);
  const std::vector<Rank> one{1};
  for (const std::int64_t spares : {std::int64_t{-1}, std::int64_t{1} << 40})
    CHECK_THROWS_AS(shrink(plan, one, ShrinkPolicy::spare, spares), UsageError);
  CHECK_THROWS_AS(shrink(whole_plan("dp=1048576,tp=1048576"), one), UsageError);
}

// SPDX-License-Identifier: BSD-3-Clause
// Where groups lie, compared with a count of each group's units.
#include "place/spread.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "machine/read_machine.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::GroupFamily;
using rankmesh::LevelKind;
using rankmesh::LevelSpread;
using rankmesh::Machine;
using rankmesh::MachineReader;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::Rank;

namespace {

MeshPlan plan_of(const char* text, std::optional<std::int64_t> world = std::nullopt) {
  return MeshSpec::parse(text).plan(world);
}

// The same figures, counted group by group.
void check_spread(const GroupFamily& family, const Machine& machine,
                  const std::vector<std::int64_t>& slots) {
  const auto spreads = spread_of(family, machine, slots);
  REQUIRE(spreads.size() == machine.levels().size());
  for (std::size_t l = 0; l < spreads.size(); ++l) {
    LevelSpread expected;
    std::set<std::int64_t> split, listed;
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      std::set<std::int64_t> units;
      for (const Rank rank : family.group(g))
        units.insert(machine.unit(l, slots.empty() ? rank.value() : slots[rank.to_size()]));
      const auto count = static_cast<std::int64_t>(units.size());
      expected.most_units = std::max(expected.most_units, count);
      if (count == 1) ++expected.inside;
      if (count > 1) split.insert(g);
      CHECK(units_of(family.group(g), machine, l, slots) == count);
    }
    CAPTURE(family.name());
    CAPTURE(machine.describe());
    CHECK(spreads[l].inside == expected.inside);
    CHECK(spreads[l].most_units == expected.most_units);
    CHECK(spreads[l].split == static_cast<std::int64_t>(split.size()));
    for (const auto& [first, last] : spreads[l].split_groups)
      for (std::int64_t g = first; g <= last; ++g) listed.insert(g);
    CHECK(std::ranges::includes(split, listed));
    if (spreads[l].split_groups.size() < 16) CHECK(split == listed);
  }
}

}  // namespace

TEST_CASE("tensor parallelism stays in a node of eight, data parallelism does not") {
  const MeshPlan plan = plan_of("pp=2,dp=4,tp=8");
  const Machine machine = MachineReader{}.machine(
      {.ranks_per_node = 8, .nodes_per_leaf = 4, .world_size = plan.world_size()});
  const auto tp = spread_of(plan.groups("tp"), machine);
  CHECK(tp[1].inside == 8);
  CHECK(tp[1].most_units == 1);
  const auto dp = spread_of(plan.groups("dp"), machine);
  CHECK(dp[0].inside == 16);
  CHECK(dp[1].inside == 0);
  CHECK(dp[1].most_units == 4);
  CHECK(dp[1].split == 16);
  CHECK(dp[1].split_groups == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 15}});
}

TEST_CASE("spreads agree with a count of every group") {
  const char* meshes[] = {"pp=3,dp=4,tp=2",
                          "dp=4,tp=6;dp_tp=dp*tp",
                          "a=2,b=3,c=4;ac=a*c",
                          "pp=2,dp=2,tp=6;emb=ends(pp)",
                          "dp=24",
                          "tp=3,pp=8 | ep=6,x=4"};
  std::mt19937 random{7};
  for (const char* mesh : meshes) {
    const MeshPlan plan = plan_of(mesh);
    std::vector<std::int64_t> slots(24);
    std::iota(slots.begin(), slots.end(), 0);
    for (int round = 0; round < 12; ++round) {
      std::vector<rankmesh::MachineLevel> levels;
      if (round % 3 == 0) {
        levels = {{.name = "leaf", .kind = LevelKind::network, .size = 12},
                  {.name = "node", .kind = LevelKind::node, .size = 1 + round % 2 * 3}};
      } else if (round % 3 == 1) {
        levels = {{.name = "node", .kind = LevelKind::node, .size = 2 + round}};
      } else {
        std::vector<std::int32_t> units;
        for (int s = 0; s < 24; ++s) units.push_back(static_cast<std::int32_t>(random() % 5));
        levels = {{.name = "node", .kind = LevelKind::node, .units = units}};
      }
      const Machine machine{24, levels};
      for (const GroupFamily& family : plan.families()) {
        check_spread(family, machine, {});
        check_spread(family, machine, slots);
      }
      std::ranges::shuffle(slots, random);
    }
  }
}

TEST_CASE("a rank without a slot is refused") {
  const MeshPlan plan = plan_of("tp=8");
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 4});
  CHECK_THROWS_AS((void)spread_of(plan.groups("tp"), machine), rankmesh::UsageError);
}

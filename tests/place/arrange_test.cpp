// SPDX-License-Identifier: BSD-3-Clause
// Arrangements of ranks, compared with brute force.
#include "rankmesh/place/arrange.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <ranges>

#include "machine/read_machine.hpp"
#include "place/brute_force.hpp"
#include "place/spread.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::arrange;
using rankmesh::Arrangements;
using rankmesh::FamilyTraffic;
using rankmesh::LevelKind;
using rankmesh::Machine;
using rankmesh::MachineLevel;
using rankmesh::MachineReader;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::Pattern;

namespace {

using Random = std::mt19937_64;

std::int64_t pick(Random& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

// A mesh of 4 to `most` ranks with one to three dimensions.
std::string random_mesh(Random& random, std::int64_t most) {
  const char* names[] = {"tp", "dp", "pp"};
  while (true) {
    std::int64_t ranks = 1;
    std::string text;
    const std::int64_t count = 1 + pick(random, 3);
    for (std::int64_t d = 0; d < count; ++d) {
      const std::int64_t size = 2 + pick(random, 5);
      ranks *= size;
      text += (d > 0 ? "," : "") + std::string{names[d]} + "=" + std::to_string(size);
    }
    if (count > 1 && pick(random, 3) == 0) text += ";both=tp*dp";
    if (ranks >= 4 && ranks <= most) return text;
  }
}

// Nodes of one size or of several, with or without switches above them.
Machine random_machine(Random& random, std::int64_t slots) {
  std::vector<std::int32_t> nodes, leaves;
  const std::int64_t size = 1 + pick(random, std::min<std::int64_t>(6, slots));
  const bool is_ragged = pick(random, 2) == 0;
  const std::int64_t per_leaf = 1 + pick(random, 3);
  std::int32_t node = 0;
  while (static_cast<std::int64_t>(nodes.size()) < slots) {
    const std::int64_t own = is_ragged ? 1 + pick(random, size) : size;
    for (std::int64_t s = 0; s < own && static_cast<std::int64_t>(nodes.size()) < slots; ++s) {
      nodes.push_back(node);
      leaves.push_back(static_cast<std::int32_t>(node / per_leaf));
    }
    ++node;
  }
  std::vector<MachineLevel> levels;
  if (per_leaf > 1) levels.push_back({.name = "leaf", .kind = LevelKind::network, .units = leaves});
  levels.push_back({.name = "node", .kind = LevelKind::node, .units = nodes});
  return Machine{slots, levels};
}

std::vector<FamilyTraffic> random_traffic(Random& random, const MeshPlan& plan) {
  std::vector<FamilyTraffic> traffic;
  for (const auto& family : plan.families())
    if (family.group_size() > 1)
      traffic.push_back({family.name(), 12 * (1 + pick(random, pick(random, 2) == 0 ? 4 : 100)),
                         static_cast<Pattern>(pick(random, 4))});
  return traffic;
}

}  // namespace

TEST_CASE("bytes per level agree with a count") {
  Random random{3};
  for (int c = 0; c < 200; ++c) {
    const MeshPlan plan = MeshSpec::parse(random_mesh(random, 30)).plan();
    const Machine machine = random_machine(random, plan.world_size());
    const auto traffic = random_traffic(random, plan);
    std::vector<std::int64_t> slots(static_cast<std::size_t>(plan.world_size()));
    std::iota(slots.begin(), slots.end(), 0);
    std::ranges::shuffle(slots, random);
    CHECK(bytes_per_level(plan, machine, traffic, slots) ==
          rankmesh_test::counted_bytes(plan, machine, traffic, slots));
  }
}

TEST_CASE("groups that lie alike are counted once, with the same result") {
  for (const auto& [mesh, per_node, per_leaf] :
       std::vector<std::tuple<const char*, int, int>>{{"pp=3,dp=4,tp=5", 6, 2},
                                                      {"tp=4,dp=6", 8, 1},
                                                      {"ep=7,dp=3", 4, 2},
                                                      {"dp=5,pp=5", 3, 3}}) {
    const MeshPlan plan = MeshSpec::parse(mesh).plan();
    const Machine machine = MachineReader{}.machine(
        {.ranks_per_node = per_node, .nodes_per_leaf = per_leaf, .world_size = plan.world_size()});
    std::vector<std::int64_t> same;
    for (std::int64_t r = 0; r < plan.world_size(); ++r) same.push_back(r);
    auto traffic = usual_traffic(plan);
    for (const auto pattern : {rankmesh::Pattern::ring, rankmesh::Pattern::tree,
                               rankmesh::Pattern::all_to_all, rankmesh::Pattern::chain}) {
      for (auto& family : traffic) family.pattern = pattern;
      CHECK(bytes_per_level(plan, machine, traffic) ==
            bytes_per_level(plan, machine, traffic, same));
    }
  }
}

TEST_CASE("bandwidths give a lower bound of the time") {
  const Machine plain = MachineReader{}.machine({.ranks_per_node = 4, .world_size = 8});
  const std::vector<std::int64_t> bytes{8'000'000};
  CHECK(!least_seconds_per_level(plain, bytes)[0]);
  const Machine machine = plain.with_speed(0, 1e6, std::nullopt);
  CHECK(*least_seconds_per_level(machine, bytes)[0] == doctest::Approx(1));
  CHECK(*least_seconds_per_level(machine.with_speed(0, 1e6, 0.5), bytes)[0] ==
        doctest::Approx(1.5));
  CHECK(*least_seconds_per_level(machine, std::vector<std::int64_t>{0})[0] == 0);
  CHECK_THROWS_AS((void)plain.with_speed(0, 0.0, std::nullopt), rankmesh::UsageError);
}

TEST_CASE("the arrangement of up to 12 ranks is as good as the best of all") {
  const char* more = std::getenv("RANKMESH_ARRANGE_CASES");
  const int cases = more != nullptr ? std::atoi(more) : 30;
  Random random{11};
  int ragged = 0;
  for (int c = 0; c < cases; ++c) {
    const std::string mesh = random_mesh(random, 12);
    const MeshPlan plan = MeshSpec::parse(mesh).plan();
    const Machine machine = random_machine(random, plan.world_size());
    const auto traffic = random_traffic(random, plan);
    CAPTURE(c);
    CAPTURE(mesh);
    CAPTURE(machine.describe());
    const Arrangements found = arrange(plan, machine, traffic);
    rankmesh_test::BruteForce all{plan, machine, traffic};
    CHECK(found.best.bytes == all.best(found.best.bytes));
    CHECK(found.best.bytes == bytes_per_level(plan, machine, traffic, found.best.slots));
    CHECK(found.best.bytes <= found.today.bytes);
    for (std::size_t l = 0; l < found.bound.size(); ++l)
      CHECK(found.bound[l] <= found.best.bytes[l]);
    if (!found.runner_up.slots.empty()) CHECK(found.best.bytes < found.runner_up.bytes);
    std::vector<std::int64_t> slots = found.best.slots;  // each slot once
    std::ranges::sort(slots);
    for (std::size_t s = 0; s < slots.size(); ++s)
      REQUIRE(slots[s] == static_cast<std::int64_t>(s));
    const auto is_ragged = [&](std::size_t level) {
      return machine.smallest(level) != machine.largest(level);
    };
    ragged +=
        std::ranges::any_of(std::views::iota(std::size_t{0}, machine.levels().size()), is_ragged);
  }
  CHECK(ragged > cases / 4);
}

TEST_CASE("tp moves into the nodes, and the mesh keeps its ranks") {
  const MeshPlan plan = MeshSpec::parse("tp=8,pp=4,dp=16").plan();
  const Machine machine = MachineReader{}.machine(
      {.ranks_per_node = 8, .nodes_per_leaf = 4, .world_size = plan.world_size()});
  const Arrangements found = arrange(plan, machine, usual_traffic(plan));
  const auto tp = spread_of(plan.groups("tp"), machine, found.best.slots);
  CHECK(tp.back().split == 0);
  CHECK(found.best.bytes < found.today.bytes);
  CHECK(found.today.how == "today");
}

TEST_CASE("families can be tied to their nodes") {
  const MeshPlan plan = MeshSpec::parse("dp=4,tp=4").plan();
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 4, .world_size = 16});
  const std::vector<FamilyTraffic> traffic{{"dp", 1, Pattern::ring}, {"tp", 100, Pattern::ring}};
  const Arrangements found = arrange(plan, machine, traffic, {.kept_in_nodes = {"dp"}});
  CHECK(spread_of(plan.groups("dp"), machine, found.best.slots)[0].split == 0);
  CHECK(spread_of(plan.groups("tp"), machine, found.best.slots)[0].split == 4);
}

TEST_CASE("traffic that cannot be added up is refused") {
  const MeshPlan plan = MeshSpec::parse("dp=4,tp=4;ends_=ends(dp)").plan();
  const Machine machine = MachineReader{}.machine({.ranks_per_node = 4, .world_size = 16});
  const std::vector<FamilyTraffic> huge{{"tp", INT64_MAX / 2, Pattern::ring}};
  CHECK_THROWS_AS((void)arrange(plan, machine, huge), rankmesh::UsageError);
  const std::vector<FamilyTraffic> large{{"tp", std::int64_t{1} << 56, Pattern::all_to_all}};
  CHECK(arrange(plan, machine, large).best.bytes == std::vector<std::int64_t>{0});
  const std::vector<FamilyTraffic> unknown{{"xp", 1, Pattern::ring}};
  CHECK_THROWS_AS((void)arrange(plan, machine, unknown), rankmesh::UnknownName);
  const std::vector<FamilyTraffic> none;
  CHECK(arrange(plan, machine, none).is_exact);
}

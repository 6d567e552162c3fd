// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/rank_map.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

using rankmesh::Coordinate;
using rankmesh::GroupFamily;
using rankmesh::Layout;
using rankmesh::Rank;
using rankmesh::RankMap;
using rankmesh::RankSet;

namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

std::mt19937 random_source{11};

// Random ranks for a mesh of `size`: a range, ranks with a step, descending ranks, or any ranks.
RankSet random_ranks(std::int64_t size) {
  const std::int64_t start = random_source() % 5;
  std::vector<Rank> ranks;
  switch (random_source() % 4) {
    case 0:
      return RankSet::range(start, size);
    case 1:
      for (std::int64_t r = 0; r < size; ++r) ranks.emplace_back(start + 3 * r);
      break;
    case 2:
      for (std::int64_t r = 0; r < size; ++r) ranks.emplace_back(start + 2 * (size - r));
      break;
    default:
      ranks.resize(static_cast<std::size_t>(2 * size));
      for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r] = static_cast<std::int64_t>(r);
      std::ranges::shuffle(ranks, random_source);
      ranks.resize(static_cast<std::size_t>(size));
  }
  return RankSet::of(ranks);
}

std::shared_ptr<const rankmesh::RankTable> random_table(std::int64_t size) {
  if (random_source() % 3 != 0) return nullptr;
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::shuffle(ranks, random_source);
  return rankmesh::RankTable::make(std::move(ranks));
}

// Checks every rank of every group of the mapped family.
void check_mapped(const GroupFamily& family, const RankMap& to, const GroupFamily& mapped) {
  REQUIRE(mapped.group_count() == family.group_count());
  CHECK(mapped.group_size() == family.group_size());
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const RankSet before = family.group(g);
    const RankSet after = mapped.group(g);
    REQUIRE(before.size() == after.size());
    for (std::int64_t k = 0; k < before.size(); ++k) {
      const Rank rank = after.at(k);
      CHECK(rank == to.ranks().at(before.at(k).value()));
      CHECK(mapped.find(rank) == family.find(before.at(k)));
    }
  }
}

}  // namespace

TEST_CASE("layouts and families of every kind are mapped rank by rank") {
  for (int round = 0; round < 200; ++round) {
    Sizes sizes;
    for (const char* name : {"a", "b", "c"}) sizes.emplace_back(name, 1 + random_source() % 4);
    const std::int64_t size = sizes[0].second * sizes[1].second * sizes[2].second;
    const Layout layout = Layout::row_major(sizes, 0, random_table(size));
    RankMap map{random_ranks(size)};
    const Layout mapped = map.map(layout, "grid.");
    CHECK(mapped.find("grid.b") == std::size_t{1});
    for (std::int64_t r = 0; r < size; ++r)
      CHECK(mapped.coordinates(map.ranks().at(r)) == layout.coordinates(r));

    const std::size_t members[] = {2, 0};
    const std::size_t listing[] = {1};
    const auto strided = GroupFamily::of("x", layout, members, listing);
    check_mapped(strided, map, map.map(strided, "grid."));
    CHECK(map.map(strided, "grid.").name() == "grid.x");
    CHECK(map.map(strided, "grid.").dimensions() == std::vector<std::string>{"grid.c", "grid.a"});
    check_mapped(GroupFamily::ring("r", layout, 1), map,
                 map.map(GroupFamily::ring("r", layout, 1)));
    std::vector<RankSet> lists;
    for (std::int64_t g = 0; g < strided.group_count(); ++g) lists.push_back(strided.group(g));
    const auto explicit_lists = GroupFamily::of("l", lists);
    check_mapped(explicit_lists, map, map.map(explicit_lists));
  }
}

TEST_CASE("ranks with one step stay arithmetic, others share one table") {
  const Layout layout = Layout::row_major(Sizes{{"dp", 2}, {"tp", 1 << 20}});
  const std::size_t tp[] = {1};
  RankMap shifted{RankSet::parse("8-2097159")};
  CHECK(shifted.map(layout).ranks().table() == nullptr);
  CHECK(shifted.map(layout) == Layout::row_major(Sizes{{"dp", 2}, {"tp", 1 << 20}}, 8));
  RankMap identity{RankSet::range(0, layout.size())};
  CHECK(identity.map(GroupFamily::of("tp", layout, tp)).canonical() ==
        GroupFamily::of("tp", layout, tp).canonical());

  const Layout small = Layout::row_major(Sizes{{"dp", 2}, {"tp", 2}});
  RankMap permuted{RankSet::parse("0,3,1,2")};
  const auto family = permuted.map(GroupFamily::of("tp", small, tp));
  CHECK(family.group(1).table() == permuted.map(small).ranks().table());
  CHECK(family.group(1).to_string() == "1-2");
  CHECK_THROWS_AS((void)permuted.map(layout), rankmesh::UsageError);
  CHECK_THROWS_AS(
      (RankMap{RankSet::strided(0, std::vector<rankmesh::Mode>{{1 << 13, 1 << 14}, {1 << 13, 1}})}),
      rankmesh::SpecError);
}

TEST_CASE(
    "planning on a part of the world stays cheap: equal groups are found by arithmetic there too") {
  const Layout layout = Layout::row_major(Sizes{{"dp", 1 << 30}, {"one", 1}, {"tp", 4}});
  RankMap shifted{RankSet::range(5, layout.size())};
  const std::size_t tp[] = {2};
  const std::size_t both[] = {1, 2};
  const rankmesh::MeshPlan plan{layout.size() + 8,
                                {shifted.map(layout)},
                                {shifted.map(GroupFamily::of("tp", layout, tp)),
                                 shifted.map(GroupFamily::of("again", layout, both))}};
  CHECK(plan.groups("tp").coverage(plan.world_size()) == rankmesh::Coverage::partial);
  CHECK(plan.needs_creation(0));
  CHECK(!plan.needs_creation(1));  // visiting each of 2^30 groups would take minutes
}

// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

using rankmesh::Coverage;
using rankmesh::GroupFamily;
using rankmesh::Layout;
using rankmesh::MeshPlan;
using rankmesh::Rank;
using rankmesh::RankSet;

namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

MeshPlan plan_of(const Sizes& sizes) {
  const Layout layout = Layout::row_major(sizes);
  std::vector<GroupFamily> families;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    families.push_back(GroupFamily::of(sizes[d].first, layout, std::span{&d, 1}));
  const std::int64_t world = layout.size();
  return {world, {layout}, std::move(families)};
}

std::vector<std::vector<std::int64_t>> lists(const GroupFamily& family) {
  std::vector<std::vector<std::int64_t>> result;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    result.emplace_back();
    for (const Rank rank : family.group(g)) result.back().push_back(rank.value());
  }
  return result;
}

using Lists = std::vector<std::vector<std::int64_t>>;

}  // namespace

TEST_CASE("a plain mesh lists groups row-major in the other coordinates") {
  const MeshPlan plan = plan_of({{"pp", 2}, {"dp", 2}, {"tp", 2}});
  CHECK(lists(plan.groups("pp")) == Lists{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(lists(plan.groups("dp")) == Lists{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(lists(plan.groups("tp")) == Lists{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(lists(plan.groups_of_product("tp*pp")) == Lists{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(lists(plan.groups_of_product(" pp * tp ")) == Lists{{0, 1, 4, 5}, {2, 3, 6, 7}});
  CHECK(plan.describe(5) == "pp=1,dp=0,tp=1");
  CHECK(plan.coordinate(6, "dp").value() == 1);
}

TEST_CASE("the order of members and of the listing can be chosen") {
  const Layout layout = Layout::row_major(Sizes{{"a", 2}, {"b", 2}, {"c", 2}});
  const std::size_t members[] = {2, 0};
  const std::size_t listing[] = {1};
  CHECK(lists(GroupFamily::of("x", layout, members, listing)) == Lists{{0, 4, 1, 5}, {2, 6, 3, 7}});
  const std::size_t member[] = {1};
  const std::size_t swapped[] = {2, 0};
  CHECK(lists(GroupFamily::of("y", layout, member, swapped)) ==
        Lists{{0, 2}, {4, 6}, {1, 3}, {5, 7}});
  const std::size_t incomplete[] = {2};
  CHECK_THROWS_AS(GroupFamily::of("z", layout, member, incomplete), rankmesh::UsageError);
}

TEST_CASE("explicit lists can partition the world, cover a part of it, or overlap") {
  const auto family = [](std::vector<std::vector<std::int64_t>> groups) {
    std::vector<RankSet> sets;
    for (const auto& group : groups) {
      const std::vector<Rank> ranks{group.begin(), group.end()};
      sets.push_back(RankSet::of(ranks));
    }
    return GroupFamily::of("lists", std::move(sets));
  };
  CHECK(family({{0, 2}, {1, 3}}).coverage(4) == Coverage::partition);
  CHECK(family({{0, 3}}).coverage(4) == Coverage::partial);
  const GroupFamily pairs = family({{0, 1}, {1, 2}, {2, 0}});
  CHECK(pairs.coverage(3) == Coverage::overlapping);
  CHECK(pairs.find_all(1).size() == 2);
  CHECK(!family({{0, 1, 2}, {3}}).is_uniform());
  CHECK(family({{5, 1}}).find(1)->rank_in_group.value() == 1);
  CHECK(!family({{5, 1}}).find(2).has_value());

  const MeshPlan plan{3, {Layout::row_major(Sizes{{"tp", 3}})}, {pairs}};
  CHECK(plan.memberships(1).size() == 2);
  CHECK(plan.communicators(1).empty());
  CHECK(!plan.needs_creation(0));
}

TEST_CASE("a ring: each rank and the next, found in both pairs, the lower pair first") {
  const Layout layout = Layout::row_major(Sizes{{"pp", 4}, {"tp", 2}});
  const GroupFamily ring = GroupFamily::ring("ring", layout, 0);
  CHECK(lists(ring) == Lists{{0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 0}, {7, 1}});
  CHECK(ring.coverage(8) == Coverage::overlapping);
  using Places = std::vector<rankmesh::GroupIndex>;
  using rankmesh::RankInGroup;
  CHECK(ring.find_all(0) == Places{{0, RankInGroup{0}}, {6, RankInGroup{1}}});  // the first
  CHECK(ring.find_all(4) == Places{{2, RankInGroup{1}}, {4, RankInGroup{0}}});  // in the middle
  CHECK(ring.find_all(7) == Places{{5, RankInGroup{1}}, {7, RankInGroup{0}}});  // the last
  CHECK(ring.find_all(8).empty());
  const GroupFamily alone = GroupFamily::ring("alone", Layout::row_major(Sizes{{"pp", 1}}), 0);
  CHECK(alone.find_all(0) == Places{{0, RankInGroup{0}}, {0, RankInGroup{1}}});
}

TEST_CASE("a group of one needs no communicator, so it does not make its name need a split") {
  const auto family = [](const char* name, std::vector<std::vector<Rank>> groups) {
    std::vector<RankSet> sets;
    for (const auto& group : groups) sets.push_back(RankSet::of(group));
    return GroupFamily::of(name, std::move(sets));
  };
  const MeshPlan plan{
      6, {}, {family("a", {{0, 1}, {4}}), family("b", {{0, 1}, {5}}), family("c", {{2, 3}, {5}})}};
  CHECK(plan.needs_creation(0));
  CHECK(!plan.needs_creation(1));
  CHECK(plan.needs_creation(2));
}

TEST_CASE("equal groups share one communicator, groups of one need none") {
  const Layout dense = Layout::row_major(Sizes{{"pp", 2}, {"dp", 4}, {"tp", 1}});
  const Layout expert = Layout::row_major(Sizes{{"pp", 2}, {"edp", 1}, {"ep", 4}});
  const std::size_t pp[] = {0};
  const std::size_t dp[] = {1};
  const std::size_t tp[] = {2};
  const std::size_t both[] = {1, 2};
  const MeshPlan plan{8,
                      {dense, expert},
                      {GroupFamily::of("pp", dense, pp), GroupFamily::of("dp", dense, dp),
                       GroupFamily::of("tp", dense, tp), GroupFamily::of("edp", expert, dp),
                       GroupFamily::of("ep", expert, tp), GroupFamily::of("edp_ep", expert, both)}};
  const auto uses = plan.communicators(5);
  REQUIRE(uses.size() == 2);
  CHECK(uses[0].families == std::vector<std::size_t>{0});
  CHECK(uses[1].families == std::vector<std::size_t>{1, 4, 5});
  const std::vector<bool> creates{true, true, false, false, false, false};
  for (std::size_t f = 0; f < creates.size(); ++f) CHECK(plan.needs_creation(f) == creates[f]);
}

TEST_CASE("a partial family is created unless its groups exist already") {
  const MeshPlan base = plan_of({{"dp", 2}, {"tp", 2}});
  const std::vector<Rank> first{0, 1};
  const std::vector<Rank> ends{0, 3};
  const MeshPlan plan{4,
                      base.views(),
                      {base.groups("tp"), GroupFamily::of("known", std::vector{RankSet::of(first)}),
                       GroupFamily::of("ends", std::vector{RankSet::of(ends)})}};
  CHECK(!plan.needs_creation(1));
  CHECK(plan.needs_creation(2));
  CHECK(plan.communicators(0).size() == 2);
  CHECK(plan.communicators(2).size() == 1);
}

TEST_CASE("the order in a batch: priority first, then the turn of the family") {
  using rankmesh::BatchPlace;
  MeshPlan plan = plan_of({{"dp", 2}, {"pp", 2}, {"cp", 1}, {"tp", 2}, {"edp", 1}});
  CHECK(plan.batch_place(plan.index_of("tp")) == BatchPlace{0, 0});
  CHECK(plan.batch_place(plan.index_of("cp")) == BatchPlace{0, 0});
  CHECK(plan.batch_place(plan.index_of("edp")) == BatchPlace{0, 0});
  CHECK(plan.batch_place(plan.index_of("pp")) == BatchPlace{0, 1});
  CHECK(plan.batch_place(plan.index_of("dp")) == BatchPlace{0, 2});
  CHECK(plan.batch_place(plan.index_of("tp")) < plan.batch_place(plan.index_of("pp")));
  CHECK(plan.batch_place(plan.index_of("pp")) < plan.batch_place(plan.index_of("dp")));

  plan.set_options("dp", {.priority = -1});
  plan.set_options("tp", {.priority = 3});
  CHECK(plan.batch_place(plan.index_of("dp")) == BatchPlace{-1, 2});
  CHECK(plan.batch_place(plan.index_of("tp")) == BatchPlace{3, 0});
  CHECK(plan.batch_place(plan.index_of("dp")) < plan.batch_place(plan.index_of("pp")));
  CHECK(plan.batch_place(plan.index_of("pp")) < plan.batch_place(plan.index_of("tp")));
}

TEST_CASE("options decide which equal groups share a communicator") {
  const MeshPlan base = plan_of({{"dp", 2}, {"cp", 1}, {"tp", 2}});
  MeshPlan plan{
      4, base.views(), {base.groups("dp"), base.groups("tp"), base.groups_of_product("dp*tp")}};
  plan.set_options("dp", {.duplicates = {"side"}});
  plan.set_options("tp", {.split_from = "dp*tp"});
  CHECK_THROWS_WITH_AS(plan.set_options("dp*tp", {.split_from = "dp*tp"}),
                       doctest::Contains("a family that has split_from cannot be a parent"),
                       rankmesh::SpecError);
  const auto options = [](int max_ctas) { return rankmesh::GroupOptions{.max_ctas = max_ctas}; };
  CHECK(options(4).can_share(options(4)));
  CHECK(!options(4).can_share(options(8)));
  CHECK(rankmesh::GroupOptions{.lazy = true}.can_share({}));
  CHECK(plan.options_text() == "dp(duplicates=side) tp(split_from=dp*tp)");
}

TEST_CASE("a parent must contain every group, not only the first") {
  const Layout pairs = Layout::row_major(Sizes{{"a", 6}, {"b", 2}});
  const Layout triples = Layout::row_major(Sizes{{"c", 4}, {"d", 3}});
  const std::size_t last[] = {1};
  MeshPlan plan{12,
                {pairs, triples},
                {GroupFamily::of("b", pairs, last), GroupFamily::of("d", triples, last)}};
  CHECK_THROWS_WITH_AS(plan.set_options("b", {.split_from = "d"}),
                       doctest::Contains("group 2-3 does not lie inside one group of 'd'"),
                       rankmesh::SpecError);
}

TEST_CASE("a parent must contain the groups at the end of a large mesh") {
  // The group 70000-70001 lies in two groups of the parent.
  const Layout halves = Layout::row_major(Sizes{{"dp", 2}, {"x", 70001}});
  const Layout pairs = Layout::row_major(Sizes{{"y", 70001}, {"tp", 2}});
  const std::size_t last[] = {1};
  MeshPlan plan{140002,
                {halves, pairs},
                {GroupFamily::of("x", halves, last), GroupFamily::of("tp", pairs, last)}};
  CHECK_THROWS_WITH_AS(plan.set_options("tp", {.split_from = "x"}),
                       doctest::Contains("group 70000-70001 does not lie inside one group of 'x'"),
                       rankmesh::SpecError);
}

TEST_CASE("invalid options are refused") {
  MeshPlan plan = plan_of({{"pp", 2}, {"dp", 2}, {"tp", 2}, {"one", 1}});
  using rankmesh::GroupOptions;
  const auto refused = [&](const GroupOptions& options, const char* reason) {
    CHECK_THROWS_WITH_AS(plan.set_options("dp", options), doctest::Contains(reason),
                         rankmesh::SpecError);
  };
  refused({.split_from = "dp"},
          "split_from cannot be 'dp': a family that has split_from cannot be a parent");
  refused({.split_from = "pp"}, "group 0,2 does not lie inside one group of 'pp'");
  refused({.share_resources = true}, "share_resources needs split_from");
  refused({.ranks_per_id = -1}, "ranks_per_id must be 0 or more, got -1");
  refused({.min_ctas = 4, .max_ctas = 2}, "min_ctas is greater than max_ctas");
  refused({.cta_policy = 3}, "cta_policy must be 0, 1 or 2, got 3");
  refused({.graph_usage_mode = -1}, "graph_usage_mode must be 0, 1 or 2, got -1");
  refused({.nvls_ctas = 0}, "nvls_ctas must be 1 or more, got 0");
  refused({.timeout = 0}, "timeout must be 1 or more, got 0");
  refused({.warm_up_bytes = -1}, "warm_up_bytes must be 0 or more, got -1");
  refused({.max_ctas = 0}, "min_ctas and max_ctas must be from 1 to 64, got 0");
  refused({.cga_cluster_size = 9}, "cga_cluster_size must be from 0 to 8, got 9");
  refused({.cga_cluster_size = -1}, "cga_cluster_size must be from 0 to 8, got -1");
  refused({.duplicates = {"a", "a"}}, "empty or duplicate key");
  CHECK_THROWS_AS(plan.set_options("zz", {}), rankmesh::UnknownName);
  CHECK(plan.options_text().empty());
  // The limits themselves are valid.
  CHECK_NOTHROW(plan.set_options("dp", {.min_ctas = 64, .max_ctas = 64, .cga_cluster_size = 8}));
  CHECK_NOTHROW(plan.set_options("dp", {.min_ctas = 1, .max_ctas = 1, .cga_cluster_size = 0}));
}

TEST_CASE("a group has a unique ID for each ranks_per_id ranks that begin") {
  MeshPlan plan = plan_of({{"dp", 2}, {"tp", 8}});
  const std::size_t tp = plan.index_of("tp");
  CHECK(plan.unique_ids(tp, 8) == 1);
  for (const auto& [each, ids] : {std::pair{1, 8}, {3, 3}, {4, 2}, {7, 2}, {8, 1}, {9, 1}}) {
    CAPTURE(each);
    plan.set_options("tp", {.ranks_per_id = each});
    CHECK(plan.unique_ids(tp, 8) == ids);
  }
}

TEST_CASE("tp goes before pp and pp before dp in a batch, also in a grid; a priority goes first") {
  const auto pair = std::vector{rankmesh::RankSet::range(0, 2)};
  MeshPlan plan{2,
                {},
                {GroupFamily::of("encoder.dp", pair), GroupFamily::of("pp", pair),
                 GroupFamily::of("a.pp", pair), GroupFamily::of("dp", pair),
                 GroupFamily::of("tp", pair), GroupFamily::of("a.tp", pair)}};
  const auto place = [&](const char* name) { return plan.batch_place(plan.index_of(name)); };
  CHECK(place("encoder.dp") == place("dp"));
  CHECK(place("a.pp") == place("pp"));
  CHECK(place("a.tp") == place("tp"));
  CHECK(place("tp") < place("pp"));
  CHECK(place("pp") < place("dp"));
  plan.set_options("dp", {.priority = -1});
  CHECK(place("dp") < place("tp"));
}

TEST_CASE("errors about unknown names list the known ones") {
  const MeshPlan plan = plan_of({{"dp", 2}, {"tp", 2}});
  try {
    (void)plan.groups("tq");
    FAIL("no exception");
  } catch (const rankmesh::UnknownName& error) {
    CHECK(error.hint() == "did you mean 'tp'? the names are: dp, tp");
  }
  CHECK_THROWS_AS((void)plan.groups_of_product("dp*zz"), rankmesh::UnknownName);
  CHECK_THROWS_AS((void)plan.groups_of_product("dp*dp"), rankmesh::UnknownName);
  CHECK_THROWS_AS((MeshPlan{4, {}, {plan.groups("dp"), plan.groups("dp")}}), rankmesh::SpecError);
  CHECK_THROWS_AS((MeshPlan{3, plan.views(), {}}), rankmesh::SpecError);
}

TEST_CASE("ranks outside the world and queries outside a plan are refused") {
  const Layout wide{{{"dp", 4, 2}}, 0, nullptr};
  CHECK_THROWS_AS((MeshPlan{4, {wide}, {}}), rankmesh::SpecError);
  const std::vector<Rank> far{0, 9};
  CHECK_THROWS_AS((MeshPlan{4, {}, {GroupFamily::of("far", std::vector{RankSet::of(far)})}}),
                  rankmesh::SpecError);
  const MeshPlan plan = plan_of({{"dp", 2}, {"tp", 2}});
  CHECK_THROWS_AS((void)plan.groups("tp").group(2), rankmesh::UsageError);
  CHECK_THROWS_AS((void)plan.groups("tp").group(-1), rankmesh::UsageError);
}

TEST_CASE("leaders of unique IDs follow the rule and are spread over the ranks") {
  const MeshPlan plan = plan_of({{"pp", 2}, {"dp", 4}, {"tp", 3}});
  // tp is family 2; the tp group of pp=1, dp=3 has the sum 1 + 3.
  CHECK(plan.leader(2, 7) == rankmesh::RankInGroup{(1 + 3 + 2) % 3});
  std::map<std::int64_t, std::int64_t> led;
  std::int64_t groups = 0;
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    for (std::int64_t g = 0; g < plan.families()[f].group_count(); ++g, ++groups)
      ++led[plan.families()[f].group(g).at(plan.leader(f, g).value()).value()];
  for (const auto& [rank, count] : led) CHECK(count <= (groups + 23) / 24 + 1);
}

// The sum of the coordinates is the largest 64-bit number less one. Found by fuzzing.
TEST_CASE("a leader is found in the largest mesh") {
  const MeshPlan plan = plan_of({{"dp", INT64_MAX}, {"a", 1}, {"b", 1}, {"c", 1}});
  for (std::size_t f = 1; f < 4; ++f)
    CHECK(plan.leader(f, INT64_MAX - 1) == rankmesh::RankInGroup{0});
}

TEST_CASE("the digest is fixed for all machines and releases") {
  const MeshPlan plan = plan_of({{"pp", 2}, {"dp", 2}, {"tp", 4}});
  CHECK(plan.canonical_text() ==
        "rankmesh.plan/1\nworld 16\nview offset 0 pp:2:8 dp:2:4 tp:4:1\n"
        "name pp size 2 start 0 groups 8:1 members 2:8\n"
        "name dp size 2 start 0 groups 2:8 4:1 members 2:4\n"
        "name tp size 4 start 0 groups 4:4 members 4:1\n");
  CHECK(to_string(plan.digest()) == "9ffacac6108c62b254c30b443f7bdce5");
  CHECK(plan.digest() != plan_of({{"pp", 2}, {"tp", 2}, {"dp", 4}}).digest());
}

TEST_CASE("2^30 ranks are planned and queried without costs per rank") {
  const MeshPlan plan = plan_of({{"pp", 1024}, {"dp", 1024}, {"tp", 1024}});
  const Rank rank{(std::int64_t{1} << 30) - 1};
  CHECK(plan.memberships(rank).size() == 3);
  CHECK(plan.groups("tp").group(1048575).to_string() == "1073740800-1073741823");
  CHECK(plan.describe(rank) == "pp=1023,dp=1023,tp=1023");
}

TEST_CASE("a layout on a part of the world, and one through a table") {
  const Layout part = Layout::row_major(Sizes{{"dp", 2}, {"tp", 2}}, 8);
  const std::size_t tp[] = {1};
  const MeshPlan plan{12, {part}, {GroupFamily::of("tp", part, tp)}};
  CHECK(lists(plan.groups("tp")) == Lists{{8, 9}, {10, 11}});
  CHECK(plan.groups("tp").coverage(12) == Coverage::partial);
  CHECK(plan.memberships(3).empty());
  CHECK(plan.describe(3) == "outside the mesh");
  CHECK_THROWS_AS((void)plan.coordinate(3, "tp"), rankmesh::NotMember);

  const auto table = rankmesh::RankTable::make({3, 1, 0, 2});
  const Layout permuted = Layout::row_major(Sizes{{"dp", 2}, {"tp", 2}}, 0, table);
  CHECK(lists(GroupFamily::of("tp", permuted, tp)) == Lists{{3, 1}, {0, 2}});
  CHECK(permuted.coordinates(2)->at(0).value() == 1);
  const rankmesh::Coordinate where[] = {0, 1};
  CHECK(permuted.rank(where) == Rank{1});
}

TEST_CASE(
    "random meshes: every dimension and product partitions the world, find inverts group and at") {
  std::mt19937 random{7};
  for (int round = 0; round < 300; ++round) {
    Sizes sizes;
    const int dimensions = 1 + static_cast<int>(random() % 5);
    for (int d = 0; d < dimensions; ++d)
      sizes.emplace_back(std::string(1, static_cast<char>('a' + d)), 1 + random() % 4);
    const Layout layout = Layout::row_major(sizes);
    std::vector<std::size_t> members;
    std::vector<std::size_t> listing;
    for (std::size_t d = 0; d < sizes.size(); ++d)
      (random() % 2 == 0 ? members : listing).push_back(d);
    std::ranges::shuffle(members, random);
    std::ranges::shuffle(listing, random);
    const GroupFamily family = GroupFamily::of("x", layout, members, listing);
    CHECK(family.coverage(layout.size()) == Coverage::partition);
    std::set<std::int64_t> seen;
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const RankSet group = family.group(g);
      CHECK(group.size() == family.group_size());
      CHECK(family.find_group(group) == g);
      for (std::int64_t k = 0; k < group.size(); ++k) {
        CHECK(seen.insert(group.at(k).value()).second);
        CHECK(family.find(group.at(k)) == rankmesh::GroupIndex{g, rankmesh::RankInGroup{k}});
      }
    }
    CHECK(static_cast<std::int64_t>(seen.size()) == layout.size());
    CHECK(*seen.rbegin() + 1 == layout.size());
    // The members of a group differ only in the members' coordinates.
    for (const std::size_t fixed : listing)
      for (const Rank rank : family.group(0)) CHECK(layout.coordinate(rank, fixed)->value() == 0);
  }
}

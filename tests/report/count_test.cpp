// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "place/count.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::Coverage;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;
using rankmesh::PlanCounts;

namespace {

// The same figures, found by looking at every group of every name and at every rank.
PlanCounts enumerated(const MeshPlan& plan) {
  PlanCounts counts;
  std::set<std::vector<rankmesh::Rank>> distinct;
  std::set<std::pair<std::vector<rankmesh::Rank>, std::string>>
      executed;  // and the options that separate equal groups
  counts.world_size = plan.world_size();
  counts.names = static_cast<std::int64_t>(plan.families().size());
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    const auto& family = plan.families()[f];
    const bool overlaps = family.coverage(plan.world_size()) == Coverage::overlapping;
    rankmesh::GroupOptions options = plan.options(f);
    const auto duplicates = std::exchange(options.duplicates, {});
    options.lazy = false;
    const auto execute = [&](const std::vector<rankmesh::Rank>& ranks, const std::string& key) {
      if (executed.emplace(ranks, key).second)
        counts.unique_ids += plan.unique_ids(f, static_cast<std::int64_t>(ranks.size()));
    };
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const auto ranks = family.group(g).to_vector();
      ++counts.groups;
      counts.groups_of_one += ranks.size() == 1 ? 1 : 0;
      counts.overlapping_groups += overlaps ? 1 : 0;
      distinct.insert(ranks);
      if (overlaps || ranks.size() < 2) continue;
      execute(ranks, options.to_string());
      for (const std::string& key : duplicates) execute(ranks, family.name() + "/" + key);
    }
  }
  counts.distinct_groups = static_cast<std::int64_t>(distinct.size());
  counts.communicators = static_cast<std::int64_t>(executed.size());
  std::vector<std::int64_t> groups;
  std::vector<std::int64_t> communicators;
  for (std::int64_t r = 0; r < plan.world_size(); ++r) {
    groups.push_back(static_cast<std::int64_t>(plan.memberships(r).size()));
    communicators.push_back(static_cast<std::int64_t>(plan.communicators(r).size()));
    counts.creations += communicators.back();
  }
  counts.groups_per_rank = {std::ranges::min(groups), std::ranges::max(groups), true};
  counts.communicators_per_rank = {std::ranges::min(communicators), std::ranges::max(communicators),
                                   true};
  return counts;
}

void check_count(const MeshPlan& plan) {
  const PlanCounts found = rankmesh::count(plan);
  const PlanCounts expected = enumerated(plan);
  CHECK(found.groups == expected.groups);
  CHECK(found.groups_of_one == expected.groups_of_one);
  CHECK(found.distinct_groups == expected.distinct_groups);
  CHECK(found.communicators == expected.communicators);
  CHECK(found.creations == expected.creations);
  CHECK(found.unique_ids == expected.unique_ids);
  CHECK(found.groups_per_rank.least == expected.groups_per_rank.least);
  CHECK(found.groups_per_rank.most == expected.groups_per_rank.most);
  CHECK(found.communicators_per_rank.least == expected.communicators_per_rank.least);
  CHECK(found.communicators_per_rank.most == expected.communicators_per_rank.most);
  CHECK(found == expected);
}

}  // namespace

TEST_CASE("counts are those of an enumeration") {
  for (const char* mesh : {
           "tp=1",
           "pp=2,dp=2,tp=4",
           "pp=2,dp=1,cp=1,tp=4 ; dp_cp=dp*cp,mp=pp*tp,all=pp*dp*tp",
           "pp=4,tp=2 ; embd=ends(pp)",
           "pp=4,dp=2,cp=2,tp=2 | pp=4,edp=1,ep=8 ; dp_cp=dp*cp, dp_tp=dp*cp*tp",
           "megatron:world_size=64,tp=2,pp=4,ep=2",
           "megatron:world_size=32,tp=2,pp=2",
           "megatron:world_size=24,tp=2,pp=3,rank_offset=8",
           "megatron:world_size=128,tp=2,pp=4,ep=4,num_dist_opt=2",
           "hypercommgrid:shape=2x3x4,dim_names=tp.cp.pp,rank_offset=8",
           "sglang:tp=8,attn_dp=2,attn_cp=2,moe_ep=4",
           "deepspeed:kind=grid,pp=2,dp=2,mp=2",
           "deepspeed:kind=grid,pp=1,dp=4",
           "deepspeed:kind=groups,ep=4,mp=2,world_size=16",
           "torch:shape=2x2,dim_names=dp.tp,rank_map=1x3x5x7,world_size=8",
           "torch:shape=2x2,dim_names=dp.tp,rank_map=1x0x3x2",
           "jax:mesh_shape=2x2,dcn_mesh_shape=2x1,granule_of_rank=0x1x0x1x0x1x0x1",
       }) {
    CAPTURE(mesh);
    check_count(MeshSpec::parse_string(mesh).plan());
  }
}

TEST_CASE("counts of random meshes are those of an enumeration") {
  std::mt19937 random{20240601};
  const auto pick = [&](int from, int to) {
    return std::uniform_int_distribution{from, to}(random);
  };
  for (int round = 0; round < 60; ++round) {
    const int tp = 1 << pick(0, 2), pp = pick(1, 4), cp = pick(1, 2), dp = 1 << pick(0, 3);
    const auto text = "megatron:world_size=" + std::to_string(tp * pp * cp * dp) +
                      ",tp=" + std::to_string(tp) + ",pp=" + std::to_string(pp) +
                      ",cp=" + std::to_string(cp);
    CAPTURE(text);
    check_count(MeshSpec::parse_string(text).plan());
  }
}

TEST_CASE("options that separate equal groups are counted") {
  std::mt19937 random{7};
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    MeshPlan plan =
        MeshSpec::parse_string(round % 2 == 0
                                   ? "megatron:world_size=32,tp=2,pp=2,cp=2,ep=2"
                                   : "pp=2,dp=1,cp=4,tp=2 | pp=2,ep=8 ; dp_cp=dp*cp, mp=dp*cp*tp")
            .plan();
    for (const auto& family : plan.families()) {
      rankmesh::GroupOptions options;
      if (random() % 3 == 0) options.max_ctas = 4;
      if (random() % 3 == 0) options.lazy = true;
      if (random() % 3 == 0) options.ranks_per_id = 4;
      if (random() % 3 == 0) options.duplicates = {"a", "b"};
      plan.set_options(family.name(), options);
    }
    check_count(plan);
  }
}

TEST_CASE("lists that repeat themselves or others count once") {
  const auto set = [](std::vector<rankmesh::Rank> ranks) { return rankmesh::RankSet::of(ranks); };
  std::vector<rankmesh::GroupFamily> families;
  families.push_back(rankmesh::GroupFamily::of("a", {set({0, 1}), set({2, 3})}));
  families.push_back(rankmesh::GroupFamily::of("b", {set({1, 0}), set({2, 3})}));
  families.push_back(rankmesh::GroupFamily::of("c", {set({0}), set({2, 3})}));
  families.push_back(rankmesh::GroupFamily::of("d", {set({1, 2}), set({1, 2}), set({2, 3})}));
  const MeshPlan plan{6, {}, families};
  check_count(plan);
  CHECK(rankmesh::count(plan).distinct_groups == 5);
  CHECK(rankmesh::count(plan).communicators == 3);
}

// In a world too large to count rank by rank. The second name's ranks begin before, within and
// beyond those of the first.
TEST_CASE("groups of one rank are the same only where the ranks are") {
  const auto of_ones = [](const char* name, std::int64_t first, std::int64_t count) {
    const std::vector<std::pair<std::string, std::int64_t>> sizes{{"one", 1}, {"of", count}};
    const std::size_t member = 0;
    return rankmesh::GroupFamily::of(name, rankmesh::Layout::row_major(sizes, first),
                                     std::span{&member, 1});
  };
  struct Row {
    std::int64_t first, count, distinct;
  };
  for (const Row row : {Row{8, 4, 4}, Row{9, 2, 4}, Row{10, 2, 4}, Row{10, 3, 5}, Row{10, 4, 6},
                        Row{7, 2, 5}, Row{6, 8, 8}, Row{12, 4, 8}}) {
    CAPTURE(row.first);
    CAPTURE(row.count);
    const MeshPlan plan{
        std::int64_t{1} << 30, {}, {of_ones("a", 8, 4), of_ones("b", row.first, row.count)}};
    CHECK(rankmesh::count(plan).groups_of_one == 4 + row.count);
    CHECK(rankmesh::count(plan).distinct_groups == row.distinct);
    CHECK(rankmesh::count(plan).communicators == 0);
  }
}

TEST_CASE("a large world is counted by arithmetic") {
  const PlanCounts counts =
      rankmesh::count(MeshSpec::parse_string("dp=1048576,pp=1024,tp=1024").plan());
  CHECK(counts.groups == 1048576 * 1024LL * 2 + 1048576);
  CHECK(counts.distinct_groups == counts.groups);
  CHECK(counts.communicators_per_rank == PlanCounts::PerRank{3, 3, true});
  // 2^40 ranks, 2^31 groups and more: the product does not fit.
  CHECK(counts.naive_creations() == INT64_MAX);
}

TEST_CASE("a rank can be in more than 65,535 groups") {
  std::vector<rankmesh::RankSet> groups(65537, rankmesh::RankSet::parse("0-1"));
  const MeshPlan plan{3, {}, {rankmesh::GroupFamily::of("many", std::move(groups))}};
  const PlanCounts counts = rankmesh::count(plan);
  CHECK(counts.distinct_groups == 1);
  CHECK(counts.groups_per_rank == PlanCounts::PerRank{0, 65537, true});
}

TEST_CASE("Megatron-LM at 16,384 ranks") {
  const PlanCounts counts = rankmesh::count(
      MeshSpec::parse_string("megatron:world_size=16384,tp=8,pp=16,ep=64,etp=1").plan());
  CHECK(counts.groups == 41905);
  CHECK(counts.groups_of_one == 33792);
  CHECK(counts.distinct_groups == 22049);
  CHECK(counts.groups_per_rank == PlanCounts::PerRank{15, 17, true});
}

// No name is a partition of the whole world. A fuzz target found this; it waited
// for minutes.
TEST_CASE("a huge mesh on a part of the world is counted at once") {
  const std::string mesh =
      "megatron:world_size=1073741824,tp=4,pp=2,order=tp-pp-dp-ep,num_dist_opt=2";
  const auto whole = rankmesh::count(MeshSpec::parse(mesh).plan());
  const auto part = rankmesh::count(MeshSpec::parse(mesh + ",rank_offset=8").plan());
  CHECK(part.groups == whole.groups);
  CHECK(part.distinct_groups == whole.distinct_groups);
  CHECK(part.communicators == whole.communicators);
  CHECK(part.creations == whole.creations);
}

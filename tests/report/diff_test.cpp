// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "place/diff.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::MeshSpec;
using rankmesh::NameChange;
using rankmesh::NameDiff;
using rankmesh::PlanDiff;

namespace {

PlanDiff diff(const std::string& a, const std::string& b) {
  return rankmesh::diff(MeshSpec::parse_string(a).plan(), MeshSpec::parse_string(b).plan());
}

NameDiff named(const PlanDiff& diff, std::string_view name) {
  const auto found = std::ranges::find(diff.names, name, &NameDiff::name);
  REQUIRE(found != diff.names.end());
  return *found;
}

}  // namespace

TEST_CASE("a mesh does not differ from itself") {
  for (const std::string mesh :
       {"tp=1", "pp=2,dp=2,tp=4", "megatron:world_size=64,tp=2,pp=4,ep=2",
        "deepspeed:kind=grid,pp=2,dp=2,mp=2", "sglang:tp=8,attn_dp=2,attn_cp=2,moe_ep=4",
        "jax:mesh_shape=2x2,dcn_mesh_shape=2x1,granule_of_rank=0x1x0x1x0x1x0x1"}) {
    CAPTURE(mesh);
    CHECK(diff(mesh, mesh).is_empty());
    CHECK(diff(mesh, mesh).changed_ranks == 0);
  }
}

TEST_CASE("the same groups in a larger world are a difference") {
  const rankmesh::MeshPlan plan = MeshSpec::parse_string("dp=2,tp=2").plan();
  const rankmesh::MeshPlan larger{5, plan.views(), plan.families()};
  CHECK(rankmesh::diff(plan, plan).is_empty());
  CHECK(!rankmesh::diff(plan, larger).is_empty());
  CHECK(!rankmesh::diff(larger, plan).is_empty());
}

TEST_CASE("names of one mesh only, and equal groups under other names") {
  const PlanDiff found = diff("pp=2,dp=2,tp=4", "stage=2,dp=2,tp=4");
  CHECK_FALSE(found.is_empty());
  CHECK(named(found, "pp").change == NameChange::only_a);
  CHECK(named(found, "pp").found_as == std::vector<std::string>{"stage"});
  CHECK(named(found, "stage").change == NameChange::only_b);
  CHECK(named(found, "stage").found_as == std::vector<std::string>{"pp"});
  CHECK(named(found, "tp").change == NameChange::same);
  CHECK(found.changed_ranks == 0);
}

TEST_CASE("other groups, another order of groups, another order of ranks") {
  const PlanDiff swapped = diff("pp=2,dp=2,tp=4", "dp=2,pp=2,tp=4");
  CHECK(named(swapped, "pp").change == NameChange::groups);
  CHECK(named(swapped, "pp").changed_ranks == 16);
  CHECK(named(swapped, "pp").surviving == 0);
  CHECK(named(swapped, "pp").found_as == std::vector<std::string>{"dp"});
  CHECK(named(swapped, "tp").change == NameChange::same);
  CHECK(swapped.changed_ranks == 16);
  CHECK(named(diff("a=2,b=2,tp=2", "b=2,a=2,tp=2 ; x=a*b"), "tp").change == NameChange::same);
  CHECK(
      named(diff("a=2,b=2 ; x=a*b", "torch:shape=2x2,dim_names=b.a,rank_map=0x2x1x3 ; x=a*b"), "x")
          .change == NameChange::order);
}

TEST_CASE("worlds of different sizes, and groups that both have") {
  const PlanDiff found = diff("dp=2,tp=4", "dp=4,tp=4");
  CHECK_FALSE(found.is_empty());
  CHECK(named(found, "tp").surviving == 2);
  CHECK(named(found, "tp").changed_ranks == 8);  // those that are new
  CHECK(named(found, "dp").surviving == 0);
  CHECK(found.changed_ranks == 16);
}

TEST_CASE("Megatron-LM's default order against Llama 3's, by arithmetic") {
  const PlanDiff found =
      diff("megatron:world_size=16384,tp=8,cp=16,pp=16", "llama3:tp=8,cp=16,pp=16,dp=8");
  CHECK(named(found, "tp").change == NameChange::same);
  CHECK(named(found, "cp").change != NameChange::groups);
  CHECK(named(found, "pp").change == NameChange::groups);
  CHECK(named(found, "pp").changed_ranks == 16384);
  CHECK(named(found, "dp").changed_ranks == 16384);
}

TEST_CASE("a world too large to enumerate is compared by arithmetic") {
  const PlanDiff found = diff("dp=1048576,pp=1024,tp=1024", "pp=1024,dp=1048576,tp=1024");
  CHECK(found.changed_ranks == 1048576LL * 1024 * 1024);
  CHECK(named(found, "tp").change == NameChange::same);
}

TEST_CASE("changed ranks are those whose groups have other members") {
  std::mt19937 random{7};
  const auto pick = [&] {
    return std::to_string(1 << std::uniform_int_distribution{0, 2}(random));
  };
  for (int round = 0; round < 100; ++round) {
    const std::string a = "a=" + pick() + ",b=" + pick() + ",c=" + pick();
    const std::string b = "b=" + pick() + ",a=" + pick() + ",c=" + pick();
    CAPTURE(a);
    CAPTURE(b);
    const auto plan_a = MeshSpec::parse_string(a).plan();
    const auto plan_b = MeshSpec::parse_string(b).plan();
    const PlanDiff found = rankmesh::diff(plan_a, plan_b);
    for (const char* name : {"a", "b", "c"}) {
      const auto members = [&](const rankmesh::MeshPlan& plan, std::int64_t rank) {
        const auto place = plan.groups(name).find(rank);
        auto list = place ? plan.groups(name).group(place->group).to_vector()
                          : std::vector<rankmesh::Rank>{};
        std::ranges::sort(list);
        return list;
      };
      std::int64_t changed = 0;
      for (std::int64_t r = 0; r < std::max(plan_a.world_size(), plan_b.world_size()); ++r)
        changed += members(plan_a, r) != members(plan_b, r) ? 1 : 0;
      CHECK(named(found, name).changed_ranks == changed);
    }
  }
}

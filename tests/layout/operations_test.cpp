// SPDX-License-Identifier: BSD-3-Clause
// Tests slices, concatenation and sub-meshes. Flatten and unflatten are compared with the records
// of torch in tests/presets.
#include "rankmesh/layout/operations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

using rankmesh::Coordinate;
using rankmesh::Layout;
using rankmesh::Rank;
using rankmesh::UsageError;

namespace {

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;
using Names = std::vector<std::string>;
using Given = std::vector<std::pair<std::string, Coordinate>>;

Layout cube() { return Layout::row_major(Sizes{{"pp", 2}, {"dp", 3}, {"tp", 4}}); }

Layout part(const Layout& layout, const Names& names, Rank through) {
  return slice(layout, names, through);
}

std::string joined(const std::vector<Layout>& parts, Rank through) {
  return concatenate(parts, through).ranks().to_string();
}

}  // namespace

TEST_CASE("concatenate joins slices of one rank along several dimensions") {
  const Layout whole = cube();
  const Rank rank = 17;  // pp=1, dp=1, tp=1
  const Layout pp = part(whole, {"pp"}, rank), dp = part(whole, {"dp"}, rank),
               tp = part(whole, {"tp"}, rank);
  struct Row {
    std::vector<Layout> parts;
    Names same_slice;
  };
  for (const Row& row :
       {Row{{dp, tp}, {"dp", "tp"}}, Row{{tp, dp}, {"tp", "dp"}},
        Row{{tp, pp, dp}, {"tp", "pp", "dp"}},
        Row{{part(whole, {"dp", "tp"}, rank), pp}, {"dp", "tp", "pp"}}, Row{{dp}, {"dp"}}}) {
    CHECK(concatenate(row.parts, rank) == part(whole, row.same_slice, rank));
    CHECK(concatenate(row.parts, rank).ranks().contains(rank));
  }
  CHECK(joined({dp, tp}, rank) == "12-23");
}

TEST_CASE("concatenate refuses parts of different meshes, and parts that overlap") {
  const Layout whole = cube();
  const Layout dp = part(whole, {"dp"}, 0), tp = part(whole, {"tp"}, 0);
  CHECK_THROWS_WITH_AS((void)joined({}, 0),
                       doctest::Contains("concatenate needs at least one layout"), UsageError);
  CHECK_THROWS_WITH_AS((void)joined({dp, dp}, 0), doctest::Contains("duplicate dimension 'dp'"),
                       UsageError);
  CHECK_THROWS_AS((void)joined({dp, tp}, 5), rankmesh::NotMember);
  const Layout flat = flatten(whole, Names{"dp", "tp"}, "dp_tp");
  CHECK_THROWS_WITH_AS((void)joined({part(flat, {"dp_tp"}, 0), tp}, 0),
                       doctest::Contains("the parts overlap"), UsageError);
  const auto table = rankmesh::RankTable::make({0, 2, 1, 3});
  const Layout permuted = Layout::row_major(Sizes{{"x", 4}}, 0, table);
  CHECK_THROWS_WITH_AS((void)joined({tp, permuted}, 0), doctest::Contains("tables of ranks differ"),
                       UsageError);
}

TEST_CASE("a sub-mesh has the ranks that share coordinates") {
  const Layout whole = cube();
  CHECK(sub_mesh(whole, Given{{"pp", 1}}).ranks().to_string() == "12-23");
  CHECK(sub_mesh(whole, Given{{"tp", 2}, {"pp", 0}}).ranks().to_string() == "2-10:4");
  CHECK(sub_mesh(whole, Given{}) == whole);
  CHECK(sub_mesh(whole, Given{{"pp", 1}, {"dp", 2}, {"tp", 3}}).ranks().to_string() == "23");
  CHECK_THROWS_AS((void)sub_mesh(whole, Given{{"zz", 0}}), rankmesh::UnknownName);
  CHECK_THROWS_WITH_AS((void)sub_mesh(whole, Given{{"pp", 2}}),
                       doctest::Contains("must be from 0 to 1"), UsageError);
  CHECK_THROWS_WITH_AS((void)sub_mesh(whole, Given{{"pp", 0}, {"pp", 0}}),
                       doctest::Contains("given twice"), UsageError);
}

TEST_CASE("a sub-mesh of a plan keeps the families along the remaining dimensions") {
  auto plan =
      rankmesh::MeshSpec::parse("pp=2,dp=2,tp=4 | pp=2,edp=1,ep=8 ; mp=pp*tp, dense=dp*tp").plan();
  plan.set_options("tp", {.priority = 3});
  const auto stage = sub_mesh(plan, Given{{"pp", 1}});
  CHECK(stage.world_size() == 16);
  Names names;
  for (const auto& family : stage.families()) names.push_back(family.name());
  CHECK(names == Names{"dp", "tp", "edp", "ep", "dense"});
  CHECK(stage.groups("ep").group(0).to_string() == "8-15");
  CHECK(stage.groups("tp").coverage(16) == rankmesh::Coverage::partial);
  CHECK(stage.options(stage.index_of("tp")).priority == 3);
  CHECK(stage.memberships(0).empty());
  CHECK(sub_mesh(plan, Given{{"tp", 0}}).views().size() == 1);
  CHECK_THROWS_AS((void)sub_mesh(plan, Given{{"tp", 0}, {"ep", 0}}), rankmesh::UnknownName);
}

TEST_CASE("the ends of a dimension stay ends in a sub-mesh") {
  const auto groups_at = [](const char* mesh, const char* name, const char* at) {
    const auto part = sub_mesh(rankmesh::MeshSpec::parse(mesh).plan(), Given{{at, 0}});
    const auto found = std::ranges::find(part.families(), name, &rankmesh::GroupFamily::name);
    return found == part.families().end() ? "none" : found->group(0).to_string();
  };
  CHECK(groups_at("pp=4,tp=2 ; embd=ends(pp)", "embd", "tp") == "0,6");
  CHECK(groups_at("pp=2,tp=2 ; embd=ends(pp)", "embd", "tp") == "0,2");
  CHECK(groups_at("pp=4,tp=2 ; embd=ends(pp)", "embd", "pp") == "none");
  CHECK(groups_at("megatron:world_size=16,tp=2,pp=4", "embd", "tp") == "0,12");
  // The first stages are no groups along dimensions of a view.
  CHECK(groups_at("megatron:world_size=16,tp=2,pp=4", "pos_embd", "tp") == "none");
}

TEST_CASE("the groups of a sub-mesh are those of the plan that lie in it") {
  const auto plan = rankmesh::MeshSpec::parse("a=3,b=2,c=4 | a=3,d=8 ; bc=b*c, ac=a*c").plan();
  for (const auto& [name, size] : Sizes{{"a", 3}, {"b", 2}, {"c", 4}, {"d", 8}})
    for (std::int64_t c = 0; c < size; ++c) {
      const auto part = sub_mesh(plan, Given{{name, c}});
      for (const auto& family : part.families()) {
        CAPTURE(family.name());
        CHECK(std::ranges::find(family.dimensions(), name) == family.dimensions().end());
        std::int64_t inside = 0;
        for (std::int64_t g = 0; g < plan.groups(family.name()).group_count(); ++g)
          inside += family.find_group(plan.groups(family.name()).group(g)).has_value() ? 1 : 0;
        CHECK(inside == family.group_count());
        CHECK(family.group_count() * family.group_size() == plan.world_size() / size);
      }
    }
}

TEST_CASE("ends are the first and the last rank along a dimension") {
  const auto lists = [](const rankmesh::GroupFamily& family) {
    std::string text;
    for (std::int64_t g = 0; g < family.group_count(); ++g)
      text += (g > 0 ? ";" : "") + family.group(g).to_string();
    return text;
  };
  const Layout layout = Layout::row_major(Sizes{{"pp", 4}, {"tp", 2}});
  CHECK(lists(ends("embd", layout, "pp")) == "0,6;1,7");
  CHECK(ends("embd", layout, "pp").coverage(8) == rankmesh::Coverage::partial);
  CHECK(lists(ends("embd", Layout::row_major(Sizes{{"pp", 1}, {"tp", 2}}), "pp")) == "0;1");
  CHECK_THROWS_AS((void)ends("embd", layout, "zz"), rankmesh::UnknownName);
  // The same groups as in the preset of Megatron-LM.
  const auto plan = rankmesh::MeshSpec::parse("megatron:world_size=32,tp=2,pp=4,cp=2").plan();
  CHECK(lists(ends("embd", plan.views().front(), "pp")) == lists(plan.groups("embd")));
}

TEST_CASE(
    "random meshes: slices concatenate to the slice of all dimensions, sub-meshes partition") {
  std::mt19937 random{29};
  for (int round = 0; round < 200; ++round) {
    Sizes sizes;
    for (const char* name : {"a", "b", "c", "d"}) sizes.emplace_back(name, 1 + random() % 3);
    const Layout layout = Layout::row_major(sizes, static_cast<std::int64_t>(random() % 4));
    const Rank rank = layout.ranks().at(static_cast<std::int64_t>(random()) % layout.size());
    Names names{"a", "b", "c", "d"};
    std::ranges::shuffle(names, random);
    const std::size_t cut = 1 + random() % 2;
    const Names first{names.begin(), names.begin() + static_cast<std::ptrdiff_t>(cut)};
    const Names second{names.begin() + static_cast<std::ptrdiff_t>(cut), names.begin() + 3};
    const Names both{names.begin(), names.begin() + 3};
    CHECK(concatenate(std::vector{part(layout, first, rank), part(layout, second, rank)}, rank) ==
          part(layout, both, rank));

    std::int64_t ranks = 0;
    const std::size_t d = *layout.find(names[3]);
    for (std::int64_t c = 0; c < layout.dimensions()[d].size; ++c) {
      const Layout sub = sub_mesh(layout, Given{{names[3], c}});
      for (const Rank r : sub.ranks()) CHECK(layout.coordinate(r, d)->value() == c);
      ranks += sub.size();
    }
    CHECK(ranks == layout.size());
  }
}

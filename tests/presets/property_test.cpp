// SPDX-License-Identifier: BSD-3-Clause
// Tests properties of all presets on random configurations.
#include <functional>
#include <random>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "place/diff.hpp"
#include "place/mesh_file.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "record.hpp"

using rankmesh::Coverage;
using rankmesh::GroupFamily;
using rankmesh::MeshPlan;
using rankmesh::MeshSpec;

namespace {

std::mt19937 random_source;  // the same seed in every run

std::int64_t pick(std::initializer_list<std::int64_t> values) {
  return *(values.begin() + static_cast<std::ptrdiff_t>(random_source() % values.size()));
}
std::int64_t small() { return pick({1, 1, 2, 2, 3, 4, 6}); }
std::string either(const char* a, const char* b) { return random_source() % 2 == 0 ? a : b; }

// Random sizes joined by x, and as many names.
std::pair<std::string, std::string> random_shape() {
  std::vector<std::int64_t> sizes;
  std::vector<std::string> names;
  for (std::int64_t d = pick({1, 2, 3, 4}); d > 0; --d) {
    sizes.push_back(pick({1, 2, 3, 4}));
    names.push_back(fmt::format("n{}", d));
  }
  return {fmt::format("{}", fmt::join(sizes, "x")), fmt::format("{}", fmt::join(names, "."))};
}

std::string random_order() {
  std::vector<std::string> tokens{"tp", "cp", "ep", "dp", "pp"};
  std::ranges::shuffle(tokens, random_source);
  if (random_source() % 2 == 0) {
    std::erase(tokens, "pp");
    tokens.push_back("pp");
  }
  return fmt::format("{}", fmt::join(tokens, "-"));
}

std::string random_jax() {
  const std::int64_t inside[] = {pick({1, 2, 3}), pick({1, 2, 4})};
  const std::int64_t outside[] = {pick({1, 2}), pick({1, 2, 3})};
  std::string granules;
  if (random_source() % 2 == 0) {
    std::vector<std::int64_t> list;
    for (std::int64_t g = 0; g < outside[0] * outside[1]; ++g)
      list.insert(list.end(), static_cast<std::size_t>(inside[0] * inside[1]), g);
    std::ranges::shuffle(list, random_source);
    granules = fmt::format(",granule_of_rank={}", fmt::join(list, "x"));
  }
  return fmt::format("jax:kind=hybrid,mesh_shape={},dcn_mesh_shape={}{}", fmt::join(inside, "x"),
                     fmt::join(outside, "x"), granules);
}

std::string random_tensorrt() {
  const std::int64_t tp = small(), cp = pick({1, 2, 3});
  const char* const layout =
      cp > 1 ? random_source() % 2 == 0 ? "tp_fastest" : "cp_fastest" : "any";
  return fmt::format(
      "tensorrt_llm:layout={},tp={},pp={},cp={},moe_tp={},moe_ep={},moe_cluster={},cp_type={}",
      layout, tp, small(), cp, pick({-1, 1, 2}), pick({-1, 1, 2, 4}), pick({-1, 1, 2}),
      either("HELIX", "ULYSSES"));
}

struct Generator {
  std::string system;
  std::function<std::string()> text;
};

const Generator generators[] = {
    {"megatron",
     [] {
       return fmt::format(
           "megatron:world_size={},tp={},pp={},cp={},ep={},etp={},order={},num_dist_opt={},"
           "rank_offset={}",
           pick({8, 12, 16, 24, 36, 48, 64, 72}), pick({1, 2, 3}), pick({1, 2}), pick({1, 2, 3}),
           pick({1, 2, 4}), pick({1, 2}), random_order(), pick({1, 1, 2, 3}), pick({0, 0, 5}));
     }},
    {"hypercommgrid",
     [] {
       const auto [sizes, names] = random_shape();
       return fmt::format("hypercommgrid:shape={},dim_names={},rank_offset={}", sizes, names,
                          pick({0, 3}));
     }},
    {"vllm",
     [] {
       return fmt::format("vllm:external_dp={},dp={},pp={},pcp={},tp={},dcp={}", pick({1, 2}),
                          small(), small(), pick({1, 2}), pick({1, 2, 4, 6}), pick({1, 1, 2}));
     }},
    {"tensorrt_llm", random_tensorrt},
    {"deepspeed",
     [] {
       const auto [sizes, names] = random_shape();
       return fmt::format("deepspeed:kind=topology,axes={},dims={}", names, sizes);
     }},
    {"deepspeed",
     [] {
       return fmt::format("deepspeed:kind=grid,pp={},mp={},dp={}", small(), small(), small());
     }},
    {"deepspeed",
     [] {
       return fmt::format("deepspeed:kind=groups,world_size={},ep={},pp={},mp={},mp_mode={}",
                          pick({8, 12, 24, 36, 64}), pick({1, 2, 3, 4, 6, 8}), pick({1, 2, 3}),
                          pick({1, 2, 3, 4}), either("tp", "sp"));
     }},
    {"deepspeed",
     [] {
       return fmt::format(
           "deepspeed:kind=expert_ranks,world_size={},ep={},pp={},tp={},use_data_before_expert={}",
           pick({8, 12, 24, 36, 64}), pick({1, 2, 3, 4}), pick({1, 2, 3}), pick({1, 2, 3}),
           either("true", "false"));
     }},
    {"deepspeed",
     [] {
       return fmt::format("deepspeed:kind=folding,world_size={},ep={},pp={},tp={},etp={}",
                          pick({8, 12, 24, 36, 64}), pick({1, 2, 3, 4}), pick({1, 2, 3}),
                          pick({1, 2, 3, 4}), pick({1, 2}));
     }},
    {"colossalai", [] { return "colossalai:kind=mesh,shape=" + random_shape().first; }},
    {"colossalai",
     [] {
       return fmt::format(
           "colossalai:kind=hybrid,dp={},pp={},tp={},sp={},dp_outside={},ring_attn={}", small(),
           small(), small(), pick({1, 2}), either("true", "false"), either("true", "false"));
     }},
    {"colossalai",
     [] {
       return fmt::format("colossalai:kind=moe,moe_dp={},pp={},ep={},tp={},sp={},moe_dp_outside={}",
                          small(), pick({1, 2}), small(), pick({1, 2}), pick({1, 2}),
                          either("true", "false"));
     }},
    {"torch",
     [] {
       const auto [sizes, names] = random_shape();
       return fmt::format("torch:shape={},dim_names={}", sizes, names);
     }},
    {"sglang",
     [] {
       return fmt::format("sglang:tp={},pp={},attn_dp={},attn_cp={},moe_ep={},moe_dp={}",
                          pick({4, 8, 12, 16}), pick({1, 2, 3}), pick({1, 2}), pick({1, 2, 4}),
                          pick({1, 2, 4}), pick({1, 2}));
     }},
    {"fastertransformer",
     [] { return fmt::format("fastertransformer:tp={},pp={}", small(), small()); }},
    {"jax", random_jax},
    {"llama3",
     [] {
       return fmt::format("llama3:tp={},cp={},pp={},dp={}", small(), small(), small(), small());
     }},
};

// Checks that at and index_of are inverse, and that a partition has every rank of the mesh once.
void check_family(const GroupFamily& family, const rankmesh::Layout& mesh) {
  CAPTURE(family.name());
  std::multiset<std::int64_t> seen;
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    const auto ranks = family.group(g);
    REQUIRE(ranks.size() == family.group_size());
    for (std::int64_t k = 0; k < ranks.size(); ++k) {
      const rankmesh::GroupIndex place{g, rankmesh::RankInGroup{k}};
      const auto places = family.find_all(ranks.at(k));
      REQUIRE(std::ranges::find(places, place) != places.end());
      if (places.size() == 1) REQUIRE(family.find(ranks.at(k)) == place);
      seen.insert(ranks.at(k).value());
      REQUIRE(mesh.ranks().contains(ranks.at(k)));
    }
  }
  if (family.name() == "embd" || family.name() == "pos_embd") {
    CHECK(std::set(seen.begin(), seen.end()).size() == seen.size());
  } else if (family.name() == "p2p") {
    CHECK(family.coverage(mesh.size()) == Coverage::overlapping);
    CHECK(family.group_count() == mesh.size());
  } else {
    std::multiset<std::int64_t> all;
    for (const auto rank : mesh.ranks()) all.insert(rank.value());
    CHECK(seen == all);
  }
}

void check_plan(const MeshSpec& spec, const MeshPlan& plan) {
  for (const GroupFamily& family : plan.families()) check_family(family, plan.views().front());
  for (const auto& view : plan.views())
    for (const auto rank : view.ranks()) CHECK(view.rank(view.coordinates(rank).value()) == rank);
  CHECK(plan.digest() == spec.plan().digest());
  const MeshSpec again = MeshSpec::parse(spec.to_string());
  CHECK(plan.digest() == again.plan().digest());
  CHECK(again.to_string() == spec.to_string());
  CHECK(rankmesh::diff(plan, again.plan()).is_empty());
  CHECK(plan.digest() == MeshSpec::parse_toml(to_toml(spec), "printed.toml").plan().digest());
}

}  // namespace

TEST_CASE("random configurations of every preset") {
  for (const Generator& generator : generators) {
    int accepted = 0;
    for (int i = 0; i < 400; ++i) {
      const std::string text = generator.text();
      CAPTURE(text);
      REQUIRE(text.starts_with(generator.system));
      try {
        const MeshSpec spec = MeshSpec::parse(text);
        const MeshPlan plan = spec.plan();
        ++accepted;
        check_plan(spec, plan);
      } catch (const rankmesh::SpecError& error) {
        CHECK(error.position().has_value());
        CHECK_FALSE(error.hint().empty());
      }
    }
    CAPTURE(generator.system);
    CHECK(accepted >= 40);
  }
}

TEST_CASE("every preset is tried") {
  std::set<std::string> known;
  std::set<std::string> tried;
  for (const auto& info : rankmesh::preset_catalogue()) known.emplace(info.system);
  for (const Generator& generator : generators) tried.insert(generator.system);
  CHECK(known == tried);
}

// Damaged strings give an error with a reason, or a mesh, and nothing else.
TEST_CASE("damaged presets are refused") {
  const std::string letters = "0123456789=:,;.x*-| abtpd_\n\xff";
  for (int i = 0; i < 30000; ++i) {
    std::string text = generators[random_source() % std::size(generators)].text();
    for (auto edits = random_source() % 4 + 1; edits > 0; --edits) {
      const std::size_t at = random_source() % text.size();
      const char letter = letters[random_source() % letters.size()];
      switch (random_source() % 3) {
        case 0:
          text[at] = letter;
          break;
        case 1:
          text.insert(at, 1, letter);
          break;
        case 2:
          if (text.size() > 1) text.erase(at, 1);
          break;
      }
    }
    CAPTURE(text);
    try {
      const MeshPlan plan = MeshSpec::parse(text).plan();
      for (const GroupFamily& family : plan.families()) CHECK(family.group(0).at(0).value() >= 0);
    } catch (const rankmesh::SpecError& error) {
      CHECK(!error.hint().empty());
    }
  }
}

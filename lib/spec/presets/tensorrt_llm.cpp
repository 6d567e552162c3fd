// SPDX-License-Identifier: BSD-3-Clause
// TensorRT-LLM's Mapping: of older releases, in which tp varies fastest, and of newer releases, in
// which cp varies fastest.
#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace tensorrt_llm_rules {

constexpr Key keys[] = {
    {"layout", ValueForm::word, "tp_fastest, cp_fastest, or any if cp is 1, default any"},
    {"tp", ValueForm::size, "tensor parallelism, default 1"},
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"cp", ValueForm::size, "context parallelism, default 1"},
    {"moe_tp", ValueForm::default_size,
     "tensor parallelism of the experts, default -1 (docs/presets.md)"},
    {"moe_ep", ValueForm::default_size, "expert parallelism, default -1 (docs/presets.md)"},
    {"moe_cluster", ValueForm::default_size, "expert clusters, default -1 (one)"},
    {"cp_type", ValueForm::word, "ULYSSES, STAR, RING or HELIX, default ULYSSES"}};

struct Moe {
  std::int64_t tp, ep, cluster;
};

// -1 is the default: EP is 1, and moe_tp is the rest. If one of the two is given, the other is
// the rest.
Moe moe_sizes(const Arguments& in, std::int64_t moe_world) {
  const auto given = [&](std::string_view key) -> std::optional<std::int64_t> {
    const std::int64_t value = in.number(key, -1);
    return value < 1 ? std::nullopt : std::optional{value};
  };
  const auto tp = given("moe_tp");
  const auto ep = given("moe_ep");
  const std::int64_t cluster = given("moe_cluster").value_or(1);
  const std::int64_t rest = moe_world / cluster;
  Moe moe{tp.value_or(rest), ep.value_or(1), cluster};
  if (!tp && ep) moe.tp = rest / *ep;
  if (tp && !ep) moe.ep = rest / *tp;
  if (moe.cluster > 1 && moe.ep > 1)
    in.refuse("moe_cluster",
              fmt::format("moe_cluster={} cannot be combined with expert parallelism of {}",
                          moe.cluster, moe.ep),
              "write moe_ep=1: clusters already divide the experts");
  const std::string_view culprit = ep ? "moe_ep" : tp ? "moe_tp" : "moe_cluster";
  if (in.product({moe.tp, moe.ep, moe.cluster}) != moe_world)
    in.refuse(
        culprit,
        fmt::format("moe_tp={} * moe_ep={} * moe_cluster={} is {}, but the experts have {} ranks",
                    moe.tp, moe.ep, moe.cluster, moe.tp * moe.ep * moe.cluster, moe_world),
        fmt::format("choose sizes that multiply to {}", moe_world));
  return moe;
}

// Adds the expert families that Mapping derives consistently on all ranks. For the other families,
// Mapping derives different groups on different ranks.
void add_experts(std::vector<GroupFamily>& out, const Layout& stage, bool with_tp, bool with_ep) {
  if (with_tp) out.push_back(family(stage, {"moe_tp", "moe_tp"}));
  if (with_ep) out.push_back(family(stage, {"moe_cluster", "cluster moe_ep"}));
  if (with_ep) out.push_back(family(stage, {"moe_ep", "moe_ep"}));
}

Blueprint build(const Arguments& in) {
  const std::vector<std::string> layouts{"tp_fastest", "cp_fastest", "any"};
  const std::vector<std::string> types{"ulysses", "star", "ring", "helix"};
  const std::string layout = in.word("layout", "any", layouts);
  const std::string type = in.word("cp_type", "ulysses", types);
  const std::int64_t tp = in.size("tp");
  const std::int64_t pp = in.size("pp");
  const std::int64_t cp = in.size("cp");
  if (layout == "any" && cp > 1)
    in.refuse("layout", fmt::format("cp={} needs the key 'layout'", cp),
              "write layout=cp_fastest, or layout=tp_fastest for older releases, in which tp "
              "varies fastest");
  const std::int64_t world = in.whole_world(in.product({tp, pp, cp}));
  const std::int64_t stage = world / pp;
  const bool helix = type == "helix";
  const Moe moe = moe_sizes(in, type == "ulysses" ? tp : stage);
  if (cp > 1 && !helix && moe.ep > 1)
    in.refuse(in.has("moe_ep") ? "moe_ep" : "moe_tp",
              fmt::format("expert parallelism of {} cannot be combined with cp={} under {}", moe.ep,
                          cp, type),
              "write cp_type=HELIX, or moe_ep=1, or cp=1");

  const bool cp_fastest = layout == "cp_fastest";
  const Layout view = cp_fastest ? Layout::row_major(Sizes{{"pp", pp}, {"tp", tp}, {"cp", cp}})
                                 : Layout::row_major(Sizes{{"pp", pp}, {"cp", cp}, {"tp", tp}});
  constexpr FamilyRow rows[] = {{"tp", "tp"}, {"pp", "pp"}, {"cp", "cp"}};
  Blueprint out = blueprint(world, view, rows);
  if (cp > 1 && type == "ulysses") return out;  // the experts do not cover a whole stage

  const Layout experts = Layout::row_major(
      Sizes{{"pp", pp}, {"moe_tp", moe.tp}, {"cluster", moe.cluster}, {"moe_ep", moe.ep}});
  out.views.push_back(experts);
  add_experts(out.families, experts, cp == 1 || moe.ep == 1 || (!cp_fastest && tp % moe.ep == 0),
              cp == 1 || moe.ep == stage);
  if (cp > 1 && helix && cp_fastest) {
    // The feed-forward layers and experts use a second mapping with tp = TP*CP and cp = 1.
    constexpr FamilyRow second[] = {{"helix_ffn_tp", "moe_tp cluster moe_ep"},
                                    {"helix_moe_tp", "moe_tp"},
                                    {"helix_moe_ep", "moe_ep"}};
    append(out.families, experts, second);
  }
  return out;
}

}  // namespace tensorrt_llm_rules
}  // namespace

const Preset tensorrt_llm{"tensorrt_llm", "", "pp, cp, tp (tp_fastest) or pp, tp, cp (cp_fastest)",
                          tensorrt_llm_rules::keys, tensorrt_llm_rules::build};

}  // namespace rankmesh::presets

// SPDX-License-Identifier: BSD-3-Clause
// DeepSpeed: ProcessTopology, its pipeline grid, and three ways to place experts in the
// data-parallel ranks.
#include <array>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"
#include "rankmesh/layout/reshape.hpp"

namespace rankmesh::presets {
namespace {

constexpr Key topology_keys[] = {{"axes", ValueForm::names, "the names, outermost first"},
                                 {"dims", ValueForm::sizes, "the sizes, outermost first"}};
constexpr Key grid_keys[] = {{"pp", ValueForm::size, "axis pipe, default 1"},
                             {"dp", ValueForm::size, "axis data, default: the rest of the world"},
                             {"mp", ValueForm::size, "axis model, default 1"}};
constexpr Key groups_keys[] = {
    {"ep", ValueForm::size, "expert parallelism, default 1"},
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"mp", ValueForm::size, "model parallelism, default 1"},
    {"mp_mode", ValueForm::word, "kind of model parallelism, tp or sp, default tp"},
    {"use_data_before_expert", ValueForm::flag, "needs mp=1, default false"}};
constexpr Key ranks_keys[] = {
    {"tp", ValueForm::size, "tensor parallelism, default 1"},
    {"ep", ValueForm::size, "expert parallelism, default 1"},
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"use_data_before_expert", ValueForm::flag, "data inside expert, default false"}};
constexpr Key folding_keys[] = {
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"tp", ValueForm::size, "tensor parallelism, default 1"},
    {"ep", ValueForm::size, "expert parallelism, default 1"},
    {"etp", ValueForm::size, "tensor parallelism of the experts, only checked, default 1"}};

Blueprint build_topology(const Arguments& in) {
  const auto axes = in.names("axes");
  const auto dims = in.numbers("dims");
  if (axes.size() != dims.size())
    in.refuse("dims", fmt::format("got {} sizes for {} axes", dims.size(), axes.size()),
              "give one size per axis");
  Sizes sizes;
  for (std::size_t d = 0; d < axes.size(); ++d) sizes.emplace_back(axes[d], dims[d]);
  const Layout view = Layout::row_major(sizes);
  return blueprint(in.whole_world(view.size()), view, axes);
}

Blueprint build_grid(const Arguments& in) {
  const std::int64_t pp = in.size("pp");
  const std::int64_t mp = in.size("mp");
  const std::int64_t dp = in.free_size("dp", in.product({pp, mp}));
  const Layout view = Layout::row_major(Sizes{{"pipe", pp}, {"data", dp}, {"model", mp}});
  constexpr FamilyRow rows[] = {
      {"ds_model", "pipe model"}, {"data", "data"}, {"pipe", "pipe"}, {"slice", "model"}};
  Blueprint out = blueprint(view.size(), view, rows);
  out.families.push_back(GroupFamily::ring("p2p", view, 0));
  return out;
}

std::int64_t stage_of(const Arguments& in, std::int64_t world) {
  return in.quotient(world, in.size("pp"), "pp", fmt::format("the world size {}", world), "pp");
}

// The view of the experts without model parallelism, or within one lane. The ranks of an expert
// group are neighbours. If data comes first, the ranks of an expert_data group are neighbours
// instead.
Layout expert_view(const Arguments& in, std::int64_t lanes, std::int64_t lane_size) {
  const std::int64_t ep = in.size("ep");
  const std::int64_t data =
      in.quotient(lane_size, ep, "ep", fmt::format("the data parallelism of {}", lane_size), "ep");
  const bool data_first = in.flag("use_data_before_expert", false);
  const std::int64_t inner = data_first ? data : ep;
  std::vector<Layout::Dimension> dimensions{
      {"pipe", in.size("pp"), lanes * lane_size},
      {"lane", lanes, 1},
      {"expert_data", data, data_first ? lanes : lanes * inner},
      {"expert", ep, data_first ? lanes * inner : lanes}};
  if (data_first) std::swap(dimensions[2], dimensions[3]);
  if (lanes == 1) dimensions.erase(dimensions.begin() + 1);
  return {std::move(dimensions), 0, nullptr};
}

Layout model_view(std::int64_t pp, std::int64_t data, std::int64_t model) {
  return Layout::row_major(Sizes{{"pipe", pp}, {"data", data}, {"model", model}});
}

Blueprint build_groups(const Arguments& in) {
  const std::vector<std::string> modes{"tp", "sp"};
  const bool by_lanes = in.word("mp_mode", "tp", modes) == "tp";
  const std::int64_t mp = in.size("mp");
  const std::int64_t ep = in.size("ep");
  const std::int64_t world = in.required_world();
  const std::int64_t stage = stage_of(in, world);
  if (mp == 1) {
    const Layout view = expert_view(in, 1, stage);
    constexpr FamilyRow rows[] = {{"expert_data", "expert_data"}, {"expert", "expert"}};
    return blueprint(world, view, rows);
  }
  if (in.flag("use_data_before_expert", false))
    in.refuse("use_data_before_expert",
              fmt::format("use_data_before_expert needs mp=1, got mp={}", mp),
              "remove use_data_before_expert, or write mp=1");
  const std::int64_t data =
      in.quotient(stage, mp, "mp", fmt::format("the stage of {} ranks", stage), "mp");
  const std::int64_t chunks =
      in.quotient(stage, ep, "ep", fmt::format("the stage of {} ranks", stage), "ep");
  // In tp mode a stage is listed lane by lane, in sp mode in the order of its ranks. Both
  // divide the list into chunks of EP ranks. Such chunks can straddle lanes, so a Reshape
  // makes the families.
  const Layout view = model_view(in.size("pp"), data, mp);
  const Mode lanes[] = {{in.size("pp"), stage}, {mp, 1}, {data, mp}};
  const RankSet order = by_lanes ? RankSet::strided(0, lanes) : view.ranks();
  const Reshape cut{order, Sizes{{"pipe", in.size("pp")}, {"expert_data", chunks}, {"expert", ep}}};
  constexpr std::string_view pipe = "pipe";
  constexpr std::string_view expert = "expert";
  constexpr std::string_view expert_data = "expert_data";
  return {world,
          {view},
          {cut.family("expert", std::array{expert}, std::array{pipe, expert_data}),
           cut.family("expert_data", std::array{expert_data}, std::array{pipe, expert})}};
}

Blueprint build_expert_ranks(const Arguments& in) {
  const std::int64_t tp = in.size("tp");
  const std::int64_t world = in.required_world();
  const std::int64_t stage = stage_of(in, world);
  const std::int64_t lane =
      in.quotient(stage, tp, "tp", fmt::format("the stage of {} ranks", stage), "tp");
  const Layout view = expert_view(in, tp, lane);
  constexpr FamilyRow rows[] = {{"expert", "expert"}, {"expert_data", "expert_data"}};
  return blueprint(world, view, rows);
}

Blueprint build_folding(const Arguments& in) {
  const std::int64_t tp = in.size("tp");
  const std::int64_t ep = in.size("ep");
  const std::int64_t world = in.required_world();
  const std::int64_t stage = stage_of(in, world);
  const std::string stage_text = fmt::format("the stage of {} ranks", stage);
  static_cast<void>(
      in.quotient(stage, in.product({ep, in.size("etp")}), "ep", stage_text, "ep*etp"));
  const Layout dense =
      Layout::row_major(Sizes{{"pp", in.size("pp")},
                              {"dense_dp", in.quotient(stage, tp, "tp", stage_text, "tp")},
                              {"tp", tp}});
  const Layout folded =
      Layout::row_major(Sizes{{"pp", in.size("pp")}, {"edp", stage / ep}, {"ep", ep}});
  return {world,
          {dense, folded},
          {family(dense, {"tp", "tp"}), family(dense, {"dense_dp", "dense_dp"}),
           family(folded, {"ep", "ep"}), family(folded, {"edp", "edp"})}};
}

}  // namespace

const Preset deepspeed_topology{"deepspeed", "topology",
                                "in the order of axes; the last varies fastest", topology_keys,
                                build_topology};
const Preset deepspeed_grid{"deepspeed", "grid", "pipe, data, model; model varies fastest",
                            grid_keys, build_grid};
const Preset deepspeed_groups{"deepspeed", "groups",
                              "pipe, data, model; expert groups divide a pipeline stage",
                              groups_keys, build_groups};
const Preset deepspeed_expert_ranks{"deepspeed", "expert_ranks",
                                    "pipe, data, lanes; expert groups divide a lane of a stage",
                                    ranks_keys, build_expert_ranks};
const Preset deepspeed_folding{"deepspeed", "folding",
                               "tp and ep each divide a pipeline stage; both vary fastest",
                               folding_keys, build_folding};

}  // namespace rankmesh::presets

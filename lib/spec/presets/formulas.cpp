// SPDX-License-Identifier: BSD-3-Clause
// The presets that are only a formula: one row-major view, in an order that the system or its user
// chooses.
#include <algorithm>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {

constexpr Key tp_key{"tp", ValueForm::size, "tensor parallelism, default 1"};
constexpr Key pp_key{"pp", ValueForm::size, "pipeline stages, default 1"};
constexpr Key sp_key{"sp", ValueForm::size, "sequence parallelism, default 1"};
constexpr Key dp_key{"dp", ValueForm::size, "data parallelism, default: the rest of the world"};

// A view over the sizes of these keys, outermost first. The key `rest` takes the rest of the world.
// It is empty if the sizes determine the world.
Layout view_of_keys(const Arguments& in, std::span<const std::string> keys, std::string_view rest) {
  std::vector<std::int64_t> others;
  for (const std::string& key : keys)
    if (key != rest) others.push_back(in.size(key));
  const std::int64_t free = rest.empty() ? 1 : in.free_size(rest, in.product(others));
  Sizes sizes;
  for (const std::string& key : keys) sizes.emplace_back(key, key == rest ? free : in.size(key));
  const Layout view = Layout::row_major(sizes);
  if (rest.empty()) static_cast<void>(in.whole_world(view.size()));
  return view;
}

// FasterTransformer's Cartesian grid: rank = tp + TP*pp.
constexpr Key fastertransformer_keys[] = {tp_key, pp_key};

Blueprint build_fastertransformer(const Arguments& in) {
  const Layout view = view_of_keys(in, std::vector<std::string>{"pp", "tp"}, "");
  return blueprint(view.size(), view, std::vector<std::string>{"tp", "pp"});
}

// The order of parallelism of Llama 3.1: [TP, CP, PP, DP], innermost first (The Llama 3 Herd of
// Models, section 3.3.2).
constexpr Key llama3_keys[] = {
    tp_key, {"cp", ValueForm::size, "context parallelism, default 1"}, pp_key, dp_key};

Blueprint build_llama3(const Arguments& in) {
  const std::vector<std::string> order{"dp", "pp", "cp", "tp"};
  const Layout view = view_of_keys(in, order, "dp");
  return blueprint(view.size(), view, order);
}

// ColossalAI: ProcessGroupMesh with numbered axes, and the axes of its two hybrid plugins.
constexpr Key mesh_keys[] = {{"shape", ValueForm::sizes, "the sizes of axes 0, 1, ..."}};
constexpr Key hybrid_keys[] = {
    dp_key,
    pp_key,
    tp_key,
    sp_key,
    {"dp_outside", ValueForm::flag, "dp outside pp, default true"},
    {"ring_attn", ValueForm::flag, "whether ring attention puts sp outside tp, default false"}};
constexpr Key moe_keys[] = {
    {"moe_dp", ValueForm::size, "data parallelism of the experts, default: the rest of the world"},
    pp_key,
    {"ep", ValueForm::size, "expert parallelism, default 1"},
    tp_key,
    sp_key,
    {"moe_dp_outside", ValueForm::flag, "moe_dp outside pp, default true"}};

Blueprint build_mesh(const Arguments& in) {
  Sizes sizes;
  std::vector<std::string> names;
  for (const std::int64_t size : in.numbers("shape")) {
    names.push_back(fmt::format("{}", names.size()));
    sizes.emplace_back(names.back(), size);
  }
  const Layout view = Layout::row_major(sizes);
  return blueprint(in.whole_world(view.size()), view, names);
}

Blueprint in_order(const Arguments& in, std::span<const std::string> order, std::string_view data,
                   std::span<const FamilyRow> derived) {
  const Layout view = view_of_keys(in, order, data);
  Blueprint out = blueprint(view.size(), view, order);
  append(out.families, view, derived);
  return out;
}

Blueprint build_hybrid(const Arguments& in) {
  std::vector<std::string> order{"dp", "pp", "tp", "sp"};
  if (!in.flag("dp_outside", true)) std::swap(order[0], order[1]);
  if (in.flag("ring_attn", false)) std::swap(order[2], order[3]);
  constexpr FamilyRow derived[] = {{"mixed_dp", "dp sp"}};
  return in_order(in, order, "dp", derived);
}

Blueprint build_moe(const Arguments& in) {
  std::vector<std::string> order{"moe_dp", "pp", "ep", "tp", "sp"};
  if (!in.flag("moe_dp_outside", true)) std::swap(order[0], order[1]);
  constexpr FamilyRow derived[] = {{"dp", "moe_dp ep"}, {"mixed_dp", "moe_dp ep sp"}};
  return in_order(in, order, "moe_dp", derived);
}

// Returns the sizes of the keys shape and dim_names.
Sizes named_sizes(const Arguments& in) {
  const auto shape = in.numbers("shape");
  const auto names = in.names("dim_names");
  if (shape.size() != names.size())
    in.refuse("dim_names", fmt::format("got {} names for {} sizes", names.size(), shape.size()),
              "give one name per size");
  Sizes sizes;
  for (std::size_t d = 0; d < names.size(); ++d) sizes.emplace_back(names[d], shape[d]);
  return sizes;
}

// Megatron-LM's HyperCommGrid: any dimensions, the first varying fastest.
constexpr Key hypercommgrid_keys[] = {
    {"shape", ValueForm::sizes, "the sizes, fastest first"},
    {"dim_names", ValueForm::names, "the names, fastest first"},
    {"rank_offset", ValueForm::count, "the first rank of the grid, default 0"}};

Blueprint build_hypercommgrid(const Arguments& in) {
  Sizes sizes = named_sizes(in);
  const std::int64_t offset = in.number("rank_offset", 0);
  const std::int64_t world = in.whole_world(in.sum(offset, in.product(in.numbers("shape"))));
  std::ranges::reverse(sizes);
  Blueprint out = blueprint(world, Layout::row_major(sizes, offset), in.names("dim_names"));
  out.is_part = !in.has("world_size");
  return out;
}

// torch DeviceMesh: row-major, on the ranks 0, 1, ... or on the ranks of rank_map.
constexpr Key torch_keys[] = {
    {"shape", ValueForm::sizes, "the sizes, outermost first"},
    {"dim_names", ValueForm::names, "the names, outermost first"},
    {"rank_map", ValueForm::counts, "the ranks in row-major order, default 0x1x2..."}};

// rank_map may leave out ranks of the world, so world_size must be at least the highest listed rank
// + 1.
std::int64_t world_of(const Arguments& in, const RankTable& table) {
  const std::int64_t least = in.sum(std::ranges::max(table.ranks()), 1);
  if (!in.has("world_size")) return least;
  if (in.size("world_size") < least)
    in.refuse("world_size",
              fmt::format("rank_map contains rank {}, but world_size is {}", least - 1,
                          in.size("world_size")),
              fmt::format("write world_size={} or more", least));
  return in.size("world_size");
}

Blueprint build_torch(const Arguments& in) {
  const Sizes sizes = named_sizes(in);
  const std::int64_t product = in.product(in.numbers("shape"));
  if (!in.has("rank_map"))
    return blueprint(in.whole_world(product), Layout::row_major(sizes), in.names("dim_names"));
  auto ranks = in.numbers("rank_map");
  if (std::ssize(ranks) != product)
    in.refuse("rank_map",
              fmt::format("rank_map lists {} ranks, but the mesh has {}", ranks.size(), product),
              "list each rank of the mesh once");
  const auto table = RankTable::make(std::move(ranks));
  Blueprint out =
      blueprint(world_of(in, *table), Layout::row_major(sizes, 0, table), in.names("dim_names"));
  out.is_part = !in.has("world_size");
  return out;
}

}  // namespace

const Preset fastertransformer{"fastertransformer", "", "pp, tp; tp varies fastest",
                               fastertransformer_keys, build_fastertransformer};
const Preset llama3{"llama3", "", "dp, pp, cp, tp; tp varies fastest", llama3_keys, build_llama3};
const Preset colossalai_mesh{"colossalai", "mesh", "axes 0, 1, ...; the last varies fastest",
                             mesh_keys, build_mesh};
const Preset colossalai_hybrid{"colossalai", "hybrid",
                               "dp, pp, tp, sp; sp varies fastest, or tp with ring_attn",
                               hybrid_keys, build_hybrid};
const Preset colossalai_moe{"colossalai", "moe", "moe_dp, pp, ep, tp, sp; sp varies fastest",
                            moe_keys, build_moe};
const Preset hypercommgrid{"hypercommgrid", "",
                           "in the order of dim_names; the first varies fastest",
                           hypercommgrid_keys, build_hypercommgrid};
const Preset torch{"torch", "", "in the order of dim_names; the last varies fastest", torch_keys,
                   build_torch};

}  // namespace rankmesh::presets

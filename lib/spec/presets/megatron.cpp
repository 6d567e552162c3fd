// SPDX-License-Identifier: BSD-3-Clause
// Megatron-LM's initialize_model_parallel: one order string gives a dense and an expert view.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"
#include "rankmesh/layout/operations.hpp"
#include "rankmesh/layout/reshape.hpp"

namespace rankmesh::presets {
namespace {
namespace megatron_rules {

constexpr Key keys[] = {
    {"tp", ValueForm::size, "tensor parallelism, default 1"},
    {"pp", ValueForm::size, "pipeline stages, default 1"},
    {"cp", ValueForm::size, "context parallelism, default 1"},
    {"ep", ValueForm::size, "expert parallelism, default 1"},
    {"etp", ValueForm::size, "tensor parallelism of the experts, default: tp"},
    {"order", ValueForm::word, "dimensions, fastest first, default tp-cp-ep-dp-pp"},
    {"num_dist_opt", ValueForm::size, "instances of the distributed optimizer, default 1"},
    {"rank_offset", ValueForm::count, "the first rank of the mesh, default 0"}};

// The size of each token of the order string in one view.
using Tokens = std::map<std::string, std::int64_t>;

struct ViewSizes {
  std::int64_t offset, world, instances;
  Tokens dense, expert;
  std::vector<std::string> order;  // fastest first, all five tokens
};

std::int64_t own_world(const Arguments& in, std::int64_t offset) {
  const std::int64_t world = in.required_world();
  if (in.has("world_size")) return world;
  if (world <= offset)
    in.refuse("rank_offset",
              fmt::format("the mesh begins at rank {}, but the world has {} ranks", offset, world),
              "use a smaller offset or a larger world");
  return world - offset;
}

// Reads the order. Tokens that it leaves out are appended; their size must be 1.
void read_order(const Arguments& in, ViewSizes& s) {
  const std::string text = in.word("order", "tp-cp-ep-dp-pp", {});
  const std::vector<std::string> known{"tp", "cp", "ep", "dp", "pp"};
  s.order = split(text, '-');
  for (const std::string& token : s.order)
    if (std::ranges::find(known, token) == known.end())
      in.refuse("order", fmt::format("unknown dimension '{:.40}' in the order", token),
                "join tp, cp, ep, dp and pp by '-', fastest first");
  for (const std::string& token : known) {
    const auto times = std::ranges::count(s.order, token);
    if (times > 1)
      in.refuse("order", fmt::format("the order contains '{}' {} times", token, times),
                "name each dimension once");
    if (times == 1) continue;
    const std::int64_t size = std::max(s.dense.at(token), s.expert.at(token));
    if (size > 1)
      in.refuse("order",
                fmt::format("the order '{}' leaves out '{}', whose size is {}", text, token, size),
                fmt::format("write order={}-{}, or add it at another place", text, token));
    s.order.push_back(token);
  }
  const std::int64_t dp = s.dense.at("dp");
  const std::int64_t edp = s.expert.at("dp");
  if (!text.ends_with("pp") && s.dense.at("pp") > 1 && edp != dp)
    in.refuse(
        "order",
        fmt::format(
            "the order '{}' does not end in pp, so dense and expert data parallelism must be "
            "equal, but they are {} and {}",
            text, dp, edp),
        "end the order in pp, or choose ep and etp so that the two data-parallel sizes are equal");
}

ViewSizes shape_of(const Arguments& in) {
  const std::int64_t offset = in.number("rank_offset", 0);
  const std::int64_t world = own_world(in, offset);
  const std::int64_t tp = in.size("tp");
  const std::int64_t pp = in.size("pp");
  const std::int64_t cp = in.size("cp");
  const std::int64_t ep = in.size("ep");
  const std::int64_t etp = in.number("etp", tp);
  const std::string mesh = fmt::format("the mesh of {} ranks", world);
  const std::int64_t dp =
      in.quotient(world, in.product({tp, cp, pp}), "world_size", mesh, "tp*cp*pp");
  const std::int64_t edp =
      in.quotient(world, in.product({etp, ep, pp}), "world_size", mesh, "etp*ep*pp");
  ViewSizes s{offset,
              world,
              in.size("num_dist_opt"),
              {{"tp", tp}, {"cp", cp}, {"ep", 1}, {"dp", dp}, {"pp", pp}},
              {{"tp", etp}, {"cp", 1}, {"ep", ep}, {"dp", edp}, {"pp", pp}},
              {}};
  read_order(in, s);
  return s;
}

// FamilyRow-major order is slowest first, which is the order string backwards. Tokens without a
// name in `names` are left out.
Layout view_of(const ViewSizes& s, const Tokens& sizes,
               const std::map<std::string, std::string>& names) {
  Sizes dimensions;
  for (auto token = s.order.rbegin(); token != s.order.rend(); ++token)
    if (const auto name = names.find(*token); name != names.end())
      dimensions.emplace_back(name->second, sizes.at(*token));
  return Layout::row_major(dimensions, s.offset);
}

Layout dense_view(const ViewSizes& s) {
  return view_of(s, s.dense, {{"tp", "tp"}, {"cp", "cp"}, {"dp", "dp"}, {"pp", "pp"}});
}

Layout expert_view(const ViewSizes& s) {
  return view_of(s, s.expert, {{"tp", "expt_tp"}, {"ep", "ep"}, {"dp", "expt_dp"}, {"pp", "pp"}});
}

void check_stages(const Arguments& in, const Layout& dense, const Layout& expert) {
  const auto& a = dense.dimensions()[*dense.find("pp")];
  const auto& b = expert.dimensions()[*expert.find("pp")];
  if (a.size > 1 && a.stride != b.stride)
    in.refuse(
        "order",
        fmt::format("pipeline stages are {} ranks apart in the dense view, but {} ranks apart in "
                    "the expert view",
                    a.stride, b.stride),
        "end the order in pp, or choose ep and etp so that the two distances are equal");
}

// Returns the groups of the first stage of each pipeline. They are a part of the ranks.
GroupFamily first_stages(std::string_view name, const Layout& dense) {
  std::vector<Layout::Dimension> dimensions = dense.dimensions();
  dimensions[*dense.find("pp")].size = 1;
  return family(Layout{std::move(dimensions), dense.offset(), nullptr}, {name, "pp"});
}

// Divides every dp_cp group into as many contiguous chunks as there are optimizer instances.
GroupFamily intra_dp_cp(const Arguments& in, const ViewSizes& s, const Layout& dense) {
  const std::int64_t whole = s.dense.at("dp") * s.dense.at("cp");
  const std::int64_t chunk = in.quotient(whole, s.instances, "num_dist_opt",
                                         fmt::format("dp*cp = {}", whole), "num_dist_opt");
  std::vector<Mode> modes;
  Sizes factors{{"outside", s.world / whole}, {"instance", s.instances}, {"intra_dp_cp", chunk}};
  const auto collect = [&](bool inside) {
    for (const auto& d : dense.dimensions())
      if ((d.name == "dp" || d.name == "cp") == inside) modes.push_back({d.size, d.stride});
  };
  collect(false);
  collect(true);
  const Reshape cut{RankSet::strided(dense.offset(), modes), factors};
  constexpr std::string_view members[] = {"intra_dp_cp"};
  constexpr std::string_view listing[] = {"outside", "instance"};
  return cut.family("intra_dp_cp", members, listing);
}

// Divides expt_dp into instances (outer) and neighbours (inner).
void add_instances(const Arguments& in, const ViewSizes& s, const Layout& expert,
                   std::vector<GroupFamily>& out) {
  const std::int64_t inner =
      in.quotient(s.expert.at("dp"), s.instances, "num_dist_opt",
                  fmt::format("expert data parallelism of {}", s.expert.at("dp")), "num_dist_opt");
  const Layout split =
      unflatten(expert, "expt_dp", Sizes{{"instance", s.instances}, {"neighbour", inner}});
  std::string outside;
  for (const auto& d : split.dimensions())
    if (d.name != "instance" && d.name != "neighbour")
      outside += (outside.empty() ? "" : " ") + d.name;
  if (s.instances > 1) {
    out.push_back(family(split, {"intra_expt_dp", "neighbour", outside + " instance"}));
    out.push_back(family(split, {"inter_dist_opt", "instance", outside + " neighbour"}));
  }
  // The ranks of a group are tp_ep_pp groups one after another, as in Megatron-LM, and not sorted.
  out.push_back(family(split, {"intra_dist_opt", "neighbour " + outside, "instance"}));
}

constexpr FamilyRow dense_rows[] = {
    {"dp", "dp"}, {"cp", "cp"}, {"mp", "tp pp"}, {"tp", "tp"}, {"pp", "pp"}};
constexpr FamilyRow more_dense_rows[] = {
    {"tp_dp_cp", "tp dp cp"}, {"tp_dp", "tp dp"}, {"tp_cp", "tp cp"}};
constexpr FamilyRow expert_rows[] = {{"ep", "ep"},
                                     {"expt_tp", "expt_tp"},
                                     {"tp_ep", "expt_tp ep"},
                                     {"tp_ep_pp", "expt_tp ep pp"},
                                     {"expt_dp", "expt_dp"}};

Blueprint build(const Arguments& in) {
  const ViewSizes s = shape_of(in);
  const Layout dense = dense_view(s);
  const Layout expert = expert_view(s);
  check_stages(in, dense, expert);
  Blueprint out{in.sum(s.offset, s.world), {dense, expert}, {}, s.offset > 0};
  out.families.push_back(family(dense, {"dp_cp", "dp cp"}));
  if (s.instances > 1) out.families.push_back(intra_dp_cp(in, s, dense));
  append(out.families, dense, dense_rows);
  out.families.push_back(ends("embd", dense, "pp"));
  out.families.push_back(first_stages("pos_embd", dense));
  append(out.families, dense, more_dense_rows);
  append(out.families, expert, expert_rows);
  add_instances(in, s, expert, out.families);
  return out;
}

}  // namespace megatron_rules
}  // namespace

const Preset megatron{"megatron", "",
                      "in the order of the key order; its first token varies fastest",
                      megatron_rules::keys, megatron_rules::build};

}  // namespace rankmesh::presets

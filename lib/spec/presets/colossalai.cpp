// SPDX-License-Identifier: BSD-3-Clause
// ColossalAI: ProcessGroupMesh with numbered axes, and the axes of its two hybrid plugins.
#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {

constexpr Key mesh_keys[] = {{"shape", Form::sizes, "the sizes of axes 0, 1, ..."}};
constexpr Key hybrid_keys[] = {
    {"dp", Form::size, "data parallelism, default: the rest of the world"},
    {"pp", Form::size, "pipeline stages, default 1"},
    {"tp", Form::size, "tensor parallelism, default 1"},
    {"sp", Form::size, "sequence parallelism, default 1"},
    {"dp_outside", Form::flag, "dp outside pp, default true"},
    {"ring_attn", Form::flag, "whether ring attention puts sp outside tp, default false"}};
constexpr Key moe_keys[] = {
    {"moe_dp", Form::size, "data parallelism of the experts, default: the rest of the world"},
    {"pp", Form::size, "pipeline stages, default 1"},
    {"ep", Form::size, "expert parallelism, default 1"},
    {"tp", Form::size, "tensor parallelism, default 1"},
    {"sp", Form::size, "sequence parallelism, default 1"},
    {"moe_dp_outside", Form::flag, "moe_dp outside pp, default true"}};

Blueprint in_order(const Arguments& in, std::span<const std::string> order, std::int64_t data,
                   std::span<const Row> derived) {
  Sizes sizes;
  for (const std::string& name : order)
    sizes.emplace_back(name, name == "dp" || name == "moe_dp" ? data : in.size(name));
  const Layout view = Layout::row_major(sizes);
  Blueprint out{view.size(), {view}, {}};
  append(out.families, view, order);
  append(out.families, view, derived);
  return out;
}

Blueprint build_mesh(const Arguments& in) {
  Sizes sizes;
  std::vector<std::string> names;
  for (const std::int64_t size : in.numbers("shape")) {
    names.push_back(fmt::format("{}", names.size()));
    sizes.emplace_back(names.back(), size);
  }
  const Layout view = Layout::row_major(sizes);
  Blueprint out{in.whole_world(view.size()), {view}, {}};
  append(out.families, view, names);
  return out;
}

Blueprint build_hybrid(const Arguments& in) {
  const std::int64_t dp =
      in.free_size("dp", in.product({in.size("pp"), in.size("tp"), in.size("sp")}));
  std::vector<std::string> order{"dp", "pp", "tp", "sp"};
  if (!in.flag("dp_outside", true)) std::swap(order[0], order[1]);
  if (in.flag("ring_attn", false)) std::swap(order[2], order[3]);
  constexpr Row derived[] = {{"mixed_dp", "dp sp"}};
  return in_order(in, order, dp, derived);
}

Blueprint build_moe(const Arguments& in) {
  const std::int64_t moe_dp = in.free_size(
      "moe_dp", in.product({in.size("pp"), in.size("ep"), in.size("tp"), in.size("sp")}));
  std::vector<std::string> order{"moe_dp", "pp", "ep", "tp", "sp"};
  if (!in.flag("moe_dp_outside", true)) std::swap(order[0], order[1]);
  constexpr Row derived[] = {{"dp", "moe_dp ep"}, {"mixed_dp", "moe_dp ep sp"}};
  return in_order(in, order, moe_dp, derived);
}

}  // namespace

const Preset colossalai_mesh{"colossalai", "mesh", "axes 0, 1, ...; the last varies fastest",
                             mesh_keys, build_mesh};
const Preset colossalai_hybrid{"colossalai", "hybrid",
                               "dp, pp, tp, sp; sp varies fastest, or tp with ring_attn",
                               hybrid_keys, build_hybrid};
const Preset colossalai_moe{"colossalai", "moe", "moe_dp, pp, ep, tp, sp; sp varies fastest",
                            moe_keys, build_moe};

}  // namespace rankmesh::presets

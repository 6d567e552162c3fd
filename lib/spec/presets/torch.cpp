// SPDX-License-Identifier: BSD-3-Clause
// torch DeviceMesh: row-major, on the ranks 0, 1, ... or on the ranks of rank_map.
#include <algorithm>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"

namespace rankmesh::presets {
namespace {
namespace torch_rules {

constexpr Key keys[] = {
    {"shape", Form::sizes, "the sizes, outermost first"},
    {"dim_names", Form::names, "the names, outermost first"},
    {"rank_map", Form::counts, "the ranks in row-major order, default 0x1x2..."}};

// rank_map may leave out ranks of the world, so world_size must be at least the highest listed rank
// + 1.
std::int64_t world_of(const Arguments& in, std::int64_t product, const RankTable* table) {
  if (table == nullptr) return in.whole_world(product);
  const std::int64_t least = in.sum(std::ranges::max(table->ranks()), 1);
  if (!in.has("world_size")) return least;
  if (in.size("world_size") < least)
    in.refuse("world_size",
              fmt::format("rank_map contains rank {}, but world_size is {}", least - 1,
                          in.size("world_size")),
              fmt::format("write world_size={} or more", least));
  return in.size("world_size");
}

Blueprint build(const Arguments& in) {
  const auto shape = in.numbers("shape");
  const auto names = in.names("dim_names");
  if (shape.size() != names.size())
    in.refuse("dim_names", fmt::format("got {} names for {} sizes", names.size(), shape.size()),
              "give one name per size");
  const std::int64_t product = in.product(shape);
  std::shared_ptr<const RankTable> table;
  if (in.has("rank_map")) {
    auto ranks = in.numbers("rank_map");
    if (static_cast<std::int64_t>(ranks.size()) != product)
      in.refuse("rank_map",
                fmt::format("rank_map lists {} ranks, but the mesh has {}", ranks.size(), product),
                "list each rank of the mesh once");
    table = RankTable::make(std::move(ranks));
  }
  Sizes sizes;
  for (std::size_t d = 0; d < names.size(); ++d) sizes.emplace_back(names[d], shape[d]);
  const std::int64_t world = world_of(in, product, table.get());
  const Layout view = Layout::row_major(sizes, 0, table);
  Blueprint out{world, {view}, {}, table != nullptr && !in.has("world_size")};
  append(out.families, view, names);
  return out;
}

}  // namespace torch_rules
}  // namespace

const Preset torch{"torch", "", "in the order of dim_names; the last varies fastest",
                   torch_rules::keys, torch_rules::build};

}  // namespace rankmesh::presets

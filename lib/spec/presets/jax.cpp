// SPDX-License-Identifier: BSD-3-Clause
// jax create_hybrid_device_mesh: axis i has dcn_i x ici_i ranks, the part across the data-center
// network outermost.
#include <map>

#include <fmt/format.h>

#include "detail/families.hpp"
#include "detail/preset.hpp"
#include "rankmesh/layout/reshape.hpp"

namespace rankmesh::presets {
namespace {
namespace jax_rules {

constexpr Key keys[] = {
    {"mesh_shape", ValueForm::sizes, "the sizes inside one granule (slice)"},
    {"dcn_mesh_shape", ValueForm::sizes, "granules along each axis, default 1 each"},
    {"granule_of_rank", ValueForm::counts,
     "the granule of each rank, default: equal blocks in rank order"}};

struct GranuleSizes {
  std::vector<std::int64_t> inner, outer;
  std::int64_t inside, granules, world;
};

GranuleSizes shape_of(const Arguments& in) {
  GranuleSizes s{in.numbers("mesh_shape"), {}, 0, 0, 0};
  s.outer = in.has("dcn_mesh_shape") ? in.numbers("dcn_mesh_shape")
                                     : std::vector<std::int64_t>(s.inner.size(), 1);
  if (s.inner.size() != s.outer.size())
    in.refuse("dcn_mesh_shape",
              fmt::format("got {} sizes for {} axes", s.outer.size(), s.inner.size()),
              "give one size per axis of mesh_shape");
  s.inside = in.product(s.inner);
  s.granules = in.product(s.outer);
  s.world = in.whole_world(in.product({s.inside, s.granules}));
  return s;
}

// Returns the ranks granule by granule, in ascending order within a granule.
std::vector<std::int64_t> by_granule(const Arguments& in, const GranuleSizes& s) {
  const auto granule_of = in.numbers("granule_of_rank");
  if (std::ssize(granule_of) != s.world)
    in.refuse("granule_of_rank",
              fmt::format("granule_of_rank lists {} ranks, but the mesh has {}", granule_of.size(),
                          s.world),
              "list the granule of every rank");
  std::map<std::int64_t, std::vector<std::int64_t>> members;
  for (std::size_t r = 0; r < granule_of.size(); ++r)
    members[granule_of[r]].push_back(static_cast<std::int64_t>(r));
  if (std::ssize(members) != s.granules)
    in.refuse("granule_of_rank",
              fmt::format("granule_of_rank has {} granules, but dcn_mesh_shape multiplies to {}",
                          members.size(), s.granules),
              "use as many granules as dcn_mesh_shape multiplies to");
  std::vector<std::int64_t> ranks;
  for (const auto& [granule, list] : members) {
    if (std::ssize(list) != s.inside)
      in.refuse("granule_of_rank",
                fmt::format("granule {} has {} ranks, but mesh_shape multiplies to {}", granule,
                            list.size(), s.inside),
                "give every granule the same number of ranks");
    ranks.insert(ranks.end(), list.begin(), list.end());
  }
  return ranks;
}

// Returns each axis as two modes, across and inside granules. Their positions index the list
// of by_granule().
std::vector<Mode> places(const GranuleSizes& s) {
  std::vector<Mode> modes(2 * s.inner.size());
  std::int64_t inner = 1;
  std::int64_t outer = s.inside;
  for (std::size_t i = s.inner.size(); i-- > 0;) {
    modes[2 * i] = {s.outer[i], outer};
    modes[2 * i + 1] = {s.inner[i], inner};
    inner *= s.inner[i];
    outer *= s.outer[i];
  }
  return modes;
}

Layout view_of(const Arguments& in, const GranuleSizes& s) {
  Sizes sizes;
  for (std::size_t i = 0; i < s.inner.size(); ++i)
    sizes.emplace_back(fmt::format("{}", i), s.outer[i] * s.inner[i]);
  const RankSet order = RankSet::strided(0, places(s));
  std::vector<std::int64_t> lists;
  if (in.has("granule_of_rank")) lists = by_granule(in, s);
  bool in_blocks = true;
  for (std::size_t i = 0; i < lists.size(); ++i)
    in_blocks &= lists[i] == static_cast<std::int64_t>(i);
  // An axis that is entirely inside granules, or entirely across them, has one stride. Any other
  // axis needs the table.
  if (in_blocks) {
    std::vector<Layout::Dimension> dimensions;
    const auto modes = places(s);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::vector<Mode> axis = coalesced(std::span{modes}.subspan(2 * i, 2));
      if (axis.size() > 1) break;
      dimensions.push_back(
          {sizes[i].first, sizes[i].second, axis.empty() ? 1 : axis.front().stride});
    }
    if (dimensions.size() == sizes.size()) return {std::move(dimensions), 0, nullptr};
  }
  if (s.world > Reshape::max_table)
    in.refuse("mesh_shape",
              fmt::format("this mesh needs a table of {} ranks; at most {} are supported", s.world,
                          Reshape::max_table),
              "divide each axis entirely inside granules or entirely across them");
  std::vector<std::int64_t> ranks;
  ranks.reserve(static_cast<std::size_t>(s.world));
  order.for_each([&](Rank place) {
    ranks.push_back(lists.empty() ? place.value() : lists[static_cast<std::size_t>(place.value())]);
  });
  return Layout::row_major(sizes, 0, RankTable::make(std::move(ranks)));
}

Blueprint build(const Arguments& in) {
  const GranuleSizes s = shape_of(in);
  const Layout view = view_of(in, s);
  std::vector<std::string> names;
  for (const auto& dimension : view.dimensions()) names.push_back(dimension.name);
  return blueprint(s.world, view, names);
}

}  // namespace jax_rules
}  // namespace

const Preset jax{"jax", "hybrid",
                 "axes 0, 1, ...; the last varies fastest, granules outermost in every axis",
                 jax_rules::keys, jax_rules::build};

}  // namespace rankmesh::presets

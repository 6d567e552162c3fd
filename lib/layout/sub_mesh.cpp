// SPDX-License-Identifier: BSD-3-Clause
// Cuts parts out of a mesh, and joins parts.
#include <algorithm>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/operations.hpp"

namespace rankmesh {
namespace {

std::int64_t position_of(const Layout& layout, Rank rank) {
  const auto& table = layout.ranks().table();
  return table ? table->position_of(rank.value()).value_or(-1) : rank.value();
}

bool is_given(std::string_view name, Coordinates coordinates) {
  return std::ranges::find(coordinates, name, [](const auto& c) {
           return std::string_view{c.first};
         }) != coordinates.end();
}

bool has_all(const Layout& layout, Coordinates coordinates) {
  return std::ranges::all_of(coordinates,
                             [&](const auto& c) { return layout.find(c.first).has_value(); });
}

}  // namespace

Layout concatenate(std::span<const Layout> parts, Rank through) {
  if (parts.empty())
    throw UsageError{"concatenate needs at least one layout", "pass the parts to join"};
  std::vector<Layout::Dimension> dimensions;
  std::int64_t offset = position_of(parts.front(), through);
  for (const Layout& part : parts) {
    const auto coordinates = part.coordinates(through);
    if (!coordinates)
      throw NotMember{fmt::format("rank {} is not in every part", through.value()),
                      "slice all parts through the same rank, and pass this rank"};
    if (part.ranks().table() != parts.front().ranks().table())
      throw UsageError{"the parts do not come from one mesh: their tables of ranks differ",
                       "slice all parts from the same layout"};
    for (std::size_t d = 0; d < coordinates->size(); ++d) {
      const Layout::Dimension& dimension = part.dimensions()[d];
      if (std::ranges::find(dimensions, dimension.name, &Layout::Dimension::name) !=
          dimensions.end())
        throw UsageError{fmt::format("duplicate dimension '{:.40}'", dimension.name),
                         "give each dimension its own name"};
      dimensions.push_back(dimension);
      offset -= (*coordinates)[d].value() * dimension.stride;
    }
  }
  try {
    return {std::move(dimensions), offset, parts.front().ranks().table()};
  } catch (const UsageError&) {
    throw UsageError{"the parts overlap: two combinations of their coordinates give the same rank",
                     "concatenate parts along different dimensions of one mesh"};
  }
}

Layout sub_mesh(const Layout& layout, Coordinates coordinates) {
  std::int64_t offset = layout.offset();
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const auto& [name, coordinate] = coordinates[i];
    const std::size_t d = layout.index_of(name);
    if (is_given(name, coordinates.first(i)))
      throw UsageError{fmt::format("the coordinate of '{:.40}' is given twice", name),
                       "give each coordinate once"};
    const Layout::Dimension& dimension = layout.dimensions()[d];
    if (coordinate.value() < 0 || coordinate.value() >= dimension.size)
      throw UsageError{fmt::format("the coordinate along '{}' must be from 0 to {}, got {}", name,
                                   dimension.size - 1, coordinate.value()),
                       "coordinates are numbered from 0"};
    offset += coordinate.value() * dimension.stride;
  }
  std::vector<Layout::Dimension> left;
  for (const auto& dimension : layout.dimensions())
    if (!is_given(dimension.name, coordinates)) left.push_back(dimension);
  return {std::move(left), offset, layout.ranks().table()};
}

MeshPlan sub_mesh(const MeshPlan& plan, Coordinates coordinates) {
  std::vector<Layout> views;
  for (const Layout& view : plan.views())
    if (has_all(view, coordinates)) views.push_back(sub_mesh(view, coordinates));
  if (views.empty())
    throw UnknownName{"no view of the mesh contains all of the given dimensions",
                      "give coordinates along dimensions of one view"};
  std::vector<GroupFamily> families;
  for (const GroupFamily& family : plan.families()) {
    if (!family.is_strided() || family.dimensions().empty()) continue;
    for (const Layout& view : views) {
      std::vector<std::size_t> members;
      std::vector<std::size_t> listing;
      for (const std::string& name : family.dimensions())
        if (const auto d = view.find(name)) members.push_back(*d);
      if (members.size() != family.dimensions().size()) continue;
      for (std::size_t d = 0; d < view.dimensions().size(); ++d)
        if (std::ranges::find(members, d) == members.end()) listing.push_back(d);
      families.push_back(GroupFamily::of(family.name(), view, members, listing));
      break;
    }
  }
  MeshPlan part{plan.world_size(), std::move(views), std::move(families)};
  for (const GroupFamily& family : part.families()) {
    const GroupOptions& options = plan.options(plan.index_of(family.name()));
    const bool has_parent = options.split_from.empty() ||
                            std::ranges::find(part.families(), options.split_from,
                                              &GroupFamily::name) != part.families().end();
    if (has_parent) part.set_options(family.name(), options);
  }
  return part;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Cuts parts out of a mesh, and joins parts.
#include <algorithm>
#include <optional>

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

// Returns the groups along the dimensions of a family in a view, or nothing if the view lacks one
// of the dimensions.
std::optional<GroupFamily> along_dimensions(const GroupFamily& family, const Layout& view) {
  std::vector<std::size_t> members;
  std::vector<std::size_t> listing;
  for (const std::string& name : family.dimensions())
    if (const auto d = view.find(name)) members.push_back(*d);
  if (members.size() != family.dimensions().size()) return std::nullopt;
  for (std::size_t d = 0; d < view.dimensions().size(); ++d)
    if (std::ranges::find(members, d) == members.end()) listing.push_back(d);
  return GroupFamily::of(family.name(), view, members, listing);
}

// Returns the family in a part of a view, or nothing if its groups do not follow from dimensions of
// the view that the part has. A family may have the dimensions of a view and other groups, such as
// the first and the last rank.
std::optional<GroupFamily> family_in_part(const GroupFamily& family, const Layout& view,
                                          const Layout& part) {
  auto made = along_dimensions(family, part);
  if (!made || along_dimensions(family, view)->has_same_groups(family)) return made;
  const auto& dimensions = family.dimensions();
  if (dimensions.size() == 1 &&
      ends(family.name(), view, dimensions.front()).has_same_groups(family))
    return ends(family.name(), part, dimensions.front());
  return std::nullopt;
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
  std::vector<Layout> whole_views;
  std::vector<Layout> views;
  for (const Layout& view : plan.views()) {
    if (!has_all(view, coordinates)) continue;
    whole_views.push_back(view);
    views.push_back(sub_mesh(view, coordinates));
  }
  if (views.empty())
    throw UnknownName{"no view of the mesh contains all of the given dimensions",
                      "give coordinates along dimensions of one view"};
  std::vector<GroupFamily> families;
  for (const GroupFamily& family : plan.families()) {
    if (!family.is_strided() || family.dimensions().empty()) continue;
    std::optional<GroupFamily> found;
    for (std::size_t v = 0; v < views.size() && !found; ++v)
      found = family_in_part(family, whole_views[v], views[v]);
    if (found) families.push_back(*std::move(found));
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

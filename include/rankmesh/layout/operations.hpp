// SPDX-License-Identifier: BSD-3-Clause
// Operations that make layouts from layouts, as in torch DeviceMesh.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// Returns the part of a mesh that contains a rank and runs along some dimensions. The other
/// coordinates are those of the rank.
/// @param names  the dimensions, in the order of the result.
/// @param through  the rank.
/// @throws UnknownName; UsageError if a dimension is given twice; NotMember if the rank is outside
/// the layout.
RANKMESH_API Layout slice(const Layout& layout, std::span<const std::string> names, Rank through);

/// Joins several dimensions into one, which takes the place of the outermost of them. They are
/// joined in the order of the layout, whatever the order of `names`.
/// @param names  the dimensions to join.
/// @param name  the name of the result.
/// @throws UnknownName; UsageError if the dimensions have no common stride. The groups along their
/// product then exist (MeshPlan::groups_of_product), but not as a dimension.
RANKMESH_API Layout flatten(const Layout& layout, std::span<const std::string> names,
                            const std::string& name);

/// Splits a dimension into several, which take its place.
/// @param parts  names and sizes, outermost first.
/// @throws UnknownName; UsageError unless the sizes multiply to the size of the dimension.
RANKMESH_API Layout unflatten(const Layout& layout, std::string_view name,
                              std::span<const std::pair<std::string, std::int64_t>> parts);

/// Joins parts of one mesh, like _concatenate of torch's DeviceMesh: first all dimensions of the
/// first part, then those of the second, and so on. torch requires that the parts come from one
/// root mesh. Here they must have the same table, and a rank that all of them contain.
/// @param through  a rank of all parts. The result contains it, and gives it the coordinates that
/// it has in the parts.
/// @throws NotMember if a part does not contain `through`; UsageError if there is no part, a
/// dimension is repeated, the tables differ, or two combinations of coordinates would be the
/// same rank.
RANKMESH_API Layout concatenate(std::span<const Layout> parts, Rank through);

/// Coordinates with the names of their dimensions.
using Coordinates = std::span<const std::pair<std::string, Coordinate>>;

/// Returns the ranks that have the given coordinates (`pp=0`). The result has the other dimensions,
/// in their order; it has none if all coordinates are given.
/// @throws UnknownName; UsageError if a dimension is given twice or a coordinate is outside
/// its dimension.
RANKMESH_API Layout sub_mesh(const Layout& layout, Coordinates coordinates);
/// Returns a plan of the ranks that have the given coordinates, on the same world. It has the views
/// that contain all of the given dimensions, and the families along the remaining dimensions of
/// these views, with their options. Groups are listed in the order of the view. Lists, rings and
/// all other families are left out.
/// @throws UnknownName if no view contains all of the dimensions.
RANKMESH_API MeshPlan sub_mesh(const MeshPlan& plan, Coordinates coordinates);

/// Returns the pairs of the first and the last rank along a dimension, for each combination of the
/// other coordinates. For the pipeline dimension these are the groups of the first and the last
/// stage (`embd` in Megatron-LM). A group has one rank if the dimension has size 1. The ranks in
/// between are in no group. Groups are listed in the order of the layout.
/// @throws UnknownName.
RANKMESH_API GroupFamily ends(std::string name, const Layout& layout, std::string_view dimension);

/// Returns the sizes and strides of a set in the notation of torch and CuTe: `8:2`, or `(2, 4):(8,
/// 1)`, or `1:0` for one rank. If the set has a table, strides count positions instead of ranks.
RANKMESH_API std::string shape_and_stride(const RankSet& ranks);

}  // namespace rankmesh

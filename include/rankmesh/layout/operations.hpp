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

/// Returns the part of a mesh that contains a rank and runs along some dimensions. Along all other
/// dimensions, the part has the coordinates of the rank.
/// @param names  the dimensions, in the order of the result.
/// @param through  the rank.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if a dimension
/// is given twice; NotMember if the rank is outside the layout.
RANKMESH_API Layout slice(const Layout& layout, std::span<const std::string> names, Rank through);

/// Joins several dimensions into one dimension, which takes the place of the outermost of the
/// joined dimensions. The dimensions are joined in the order of the layout, whatever the order of
/// `names`.
/// @param names  the dimensions to join.
/// @param name  the name of the result.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if the
/// dimensions have no common stride. Then MeshPlan::groups_of_product still gives the groups along
/// their product, but no single dimension can describe these groups.
RANKMESH_API Layout flatten(const Layout& layout, std::span<const std::string> names,
                            const std::string& name);

/// Splits a dimension into several dimensions, which take its place.
/// @param parts  names and sizes, outermost first.
/// @throws UnknownName if the layout does not have the dimension; UsageError unless the product of
/// the sizes is the size of the dimension.
RANKMESH_API Layout unflatten(const Layout& layout, std::string_view name,
                              std::span<const std::pair<std::string, std::int64_t>> parts);

/// Joins parts of one mesh, like _concatenate of torch's DeviceMesh. The result has first all
/// dimensions of the first part, then all dimensions of the second part, and so on. torch requires
/// that the parts come from the same root mesh. This function requires that the parts have the same
/// table, and that one rank is in all parts.
/// @param through  a rank of all parts. The result contains this rank and gives it the same
/// coordinates as the parts.
/// @throws NotMember if a part does not contain `through`; UsageError if there is no part, a
/// dimension is repeated, the tables differ, or two combinations of coordinates would give the same
/// rank.
RANKMESH_API Layout concatenate(std::span<const Layout> parts, Rank through);

/// Coordinates with the names of their dimensions.
using Coordinates = std::span<const std::pair<std::string, Coordinate>>;

/// Returns the ranks that have the given coordinates (`pp=0`). The result has the other dimensions,
/// in the same order as the layout. The result has no dimensions if all coordinates are given.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if a dimension
/// is given twice or a coordinate is outside its dimension.
RANKMESH_API Layout sub_mesh(const Layout& layout, Coordinates coordinates);
/// Returns a plan of the ranks that have the given coordinates, on the same world. The plan has the
/// views that contain all of the given dimensions. It has the families along the remaining
/// dimensions of these views, and keeps the options of these families. Groups are listed in the
/// order of the view. Lists, rings and all other families are left out.
/// @throws UnknownName if no view contains all of the dimensions.
RANKMESH_API MeshPlan sub_mesh(const MeshPlan& plan, Coordinates coordinates);

/// Returns the pairs of the first and the last rank along a dimension, for each combination of the
/// other coordinates. For the pipeline dimension, the pairs are the groups of the first and the
/// last stage (`embd` in Megatron-LM). A group has one rank if the dimension has size 1. The ranks
/// in between are in no group. Groups are listed in the order of the layout.
/// @throws UnknownName if the layout does not have the dimension.
RANKMESH_API GroupFamily ends(std::string name, const Layout& layout, std::string_view dimension);

/// Returns the sizes and strides of a set in the notation of torch and CuTe: `8:2`, or `(2, 4):(8,
/// 1)`, or `1:0` for one rank. If the set has a table, strides count positions instead of ranks.
RANKMESH_API std::string shape_and_stride(const RankSet& ranks);

}  // namespace rankmesh

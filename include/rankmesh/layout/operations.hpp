// SPDX-License-Identifier: BSD-3-Clause
// Operations that derive a layout from other layouts, like the operations of torch's DeviceMesh.
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

/// Returns the part of a layout that contains the rank `through` and runs along the dimensions
/// `names`. Along all other dimensions, the ranks of the part have the same coordinates as
/// `through`.
/// @param names  the dimensions of the result, in the order of the result.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if a dimension
/// is given twice; NotMember if the rank is outside the layout.
RANKMESH_API Layout slice(const Layout& layout, std::span<const std::string> names, Rank through);

/// Joins several dimensions into one dimension. The new dimension takes the place of the outermost
/// joined dimension. The dimensions are joined in the order of the layout; the order of `names` has
/// no influence.
///
/// Dimensions without a common stride cannot be joined, because no single dimension can describe
/// the groups along their product. A program can still get these groups from
/// MeshPlan::groups_of_product().
/// @param names  the dimensions to join.
/// @param name  the name of the new dimension.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if the
/// dimensions have no common stride.
RANKMESH_API Layout flatten(const Layout& layout, std::span<const std::string> names,
                            const std::string& name);

/// Splits a dimension into several dimensions, which replace it.
/// @param parts  the names and sizes of the new dimensions, outermost first.
/// @throws UnknownName if the layout does not have the dimension; UsageError unless the product of
/// the sizes is the size of the dimension.
RANKMESH_API Layout unflatten(const Layout& layout, std::string_view name,
                              std::span<const std::pair<std::string, std::int64_t>> parts);

/// Joins parts of one mesh, like `_concatenate` of torch's DeviceMesh. The result has the
/// dimensions of the first part, followed by the dimensions of the second part, and so on. torch
/// requires that the parts come from the same root mesh. This function requires that the parts have
/// the same table, and that one rank is in all parts.
/// @param through  a rank that is in all parts. This rank has the same coordinates in the result as
/// in the parts.
/// @throws NotMember if a part does not contain `through`; UsageError if `parts` is empty, if a
/// dimension is repeated, if the tables differ, or if two combinations of coordinates would give
/// the same rank.
RANKMESH_API Layout concatenate(std::span<const Layout> parts, Rank through);

/// Coordinates with the names of their dimensions.
using Coordinates = std::span<const std::pair<std::string, Coordinate>>;

/// Returns the part of a layout that contains the ranks with the given coordinates, for example
/// `pp=0`. The result has the remaining dimensions, in the same order as the layout. If all
/// coordinates are given, the result has no dimensions.
/// @throws UnknownName if the layout does not have one of the dimensions; UsageError if a dimension
/// is given twice or a coordinate is outside its dimension.
RANKMESH_API Layout sub_mesh(const Layout& layout, Coordinates coordinates);
/// Returns a plan for the ranks that have the given coordinates. The world stays the same. The plan
/// has every view that contains all of the given dimensions, and the families along the remaining
/// dimensions of these views, with those made by ends(). Groups are listed in the order of the
/// view. All other families, for example lists and rings, are left out. A family keeps its options
/// unless its parent `split_from` is left out.
/// @throws UnknownName if no view contains all of the dimensions.
RANKMESH_API MeshPlan sub_mesh(const MeshPlan& plan, Coordinates coordinates);

/// Returns one group for each combination of the other coordinates. The group contains the first
/// and the last rank along the dimension. For example, along the pipeline dimension, each group
/// connects the first and the last stage (`embd` in Megatron-LM). A group has one rank if the
/// dimension has size 1. The ranks between the first and the last rank are in no group. Groups are
/// listed in the order of the layout.
/// @throws UnknownName if the layout does not have the dimension.
RANKMESH_API GroupFamily ends(std::string name, const Layout& layout, std::string_view dimension);

/// Returns the sizes and strides of a set in the notation of torch and CuTe: `8:2`, or `(2, 4):(8,
/// 1)`, or `1:0` for one rank. If the set has a table, strides count positions instead of ranks.
RANKMESH_API std::string shape_and_stride(const RankSet& ranks);

}  // namespace rankmesh

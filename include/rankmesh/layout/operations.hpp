// Layouts made of layouts, as in torch DeviceMesh.
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

/// The part of the mesh that a rank sees along some dimensions: every other coordinate stays the
/// rank's.
/// @param names  in any order, which becomes the order of the result.
/// @throws UnknownName; UsageError where a name stands twice; NotMember where the rank is outside.
RANKMESH_API Layout slice(const Layout& layout, std::span<const std::string> names, Rank through);

/// Dimensions joined into one, which takes the place of the outermost of them. They are joined in
/// the order of the layout, whatever the order of `names`.
/// @throws UsageError where they do not follow one stride: then only the groups of their product
/// exist
///         (MeshPlan::groups_of_product), no dimension.
RANKMESH_API Layout flatten(const Layout& layout, std::span<const std::string> names,
                            const std::string& name);

/// One dimension divided into several, outermost first, in its place.
/// @throws UnknownName; UsageError where the sizes do not multiply to the dimension's.
RANKMESH_API Layout unflatten(const Layout& layout, std::string_view name,
                              std::span<const std::pair<std::string, std::int64_t>> parts);

/// Sub-meshes of one mesh joined, as torch's DeviceMesh._concatenate does: all dimensions of the
/// first part, then those of the next, and so on. torch asks that the parts come from one root;
/// here they must share what follows from that: the table, and a rank that is in all of them
/// (`through`). The result holds that rank and keeps its coordinates; other coordinates of a mesh
/// that they were cut from stay that rank's.
/// @throws NotMember where a part does not hold `through`; UsageError where there is no part, a
/// name stands twice,
///         tables differ, or the strides of the parts cross so that two coordinates would meet in
///         one rank.
RANKMESH_API Layout concatenate(std::span<const Layout> parts, Rank through);

/// Coordinates by name.
using Coordinates = std::span<const std::pair<std::string, Coordinate>>;

/// The ranks that have the given coordinates (`pp=0`), along the dimensions that are left, in their
/// order. With all dimensions given one rank is left, of no dimension.
/// @throws UnknownName; UsageError where a name stands twice or a coordinate is outside its
/// dimension.
RANKMESH_API Layout sub_mesh(const Layout& layout, Coordinates coordinates);
/// The same of every view that has all these dimensions, as a plan on the same world: the names
/// that run along dimensions which are left, their groups listed in the order of the view. Lists,
/// rings, and names that run along a given dimension or lie in other views only are left out;
/// options stay.
/// @throws UnknownName where no view has all the dimensions.
RANKMESH_API MeshPlan sub_mesh(const MeshPlan& plan, Coordinates coordinates);

/// The first and the last rank along a dimension, for each combination of the others: the groups of
/// the first and the last pipeline stage (Megatron-LM's `embd`). One rank where the dimension has
/// size 1; ranks in between are in no group. Listed in the layout's order.
/// @throws UnknownName.
RANKMESH_API GroupFamily ends(std::string name, const Layout& layout, std::string_view dimension);

/// Sizes and strides of a set in the notation of torch and CuTe: `8:2`, or `(2, 4):(8, 1)`; `1:0`
/// for one rank. Strides count positions, not ranks, where the set has a table.
RANKMESH_API std::string shape_and_stride(const RankSet& ranks);

}  // namespace rankmesh

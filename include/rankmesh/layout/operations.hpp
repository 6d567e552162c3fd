// Layouts made of layouts, as in torch DeviceMesh.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/layout.hpp"

namespace rankmesh {

/// The part of the mesh that a rank sees along some dimensions: every other coordinate stays the rank's.
/// @param names  in any order, which becomes the order of the result.
/// @throws UnknownName; UsageError where a name stands twice; NotMember where the rank is outside.
RANKMESH_API Layout slice(const Layout& layout, std::span<const std::string> names, Rank through);

/// Dimensions joined into one, which takes the place of the outermost of them. They are joined in the order
/// of the layout, whatever the order of `names`.
/// @throws UsageError where they do not follow one stride: then only the groups of their product exist
///         (MeshPlan::groups_of_product), no dimension.
RANKMESH_API Layout flatten(const Layout& layout, std::span<const std::string> names, std::string name);

/// One dimension divided into several, outermost first, in its place.
/// @throws UnknownName; UsageError where the sizes do not multiply to the dimension's.
RANKMESH_API Layout unflatten(const Layout& layout, std::string_view name,
                              std::span<const std::pair<std::string, std::int64_t>> parts);

/// Sizes and strides of a set in the notation of torch and CuTe: `8:2`, or `(2, 4):(8, 1)`; `1:0` for one
/// rank. Strides count positions, not ranks, where the set has a table.
RANKMESH_API std::string shape_and_stride(const RankSet& ranks);

}  // namespace rankmesh

// The arithmetic of a mesh, written out so that it can be followed with pencil and paper.
#pragma once

#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::report {

/// Coordinates by division and remainder, view by view, then every group of the rank. O(names x
/// dimensions).
/// @throws UsageError where the rank is outside the world.
RANKMESH_API std::string explain_rank_text(const MeshPlan& plan, Rank rank);
/// Schema `rankmesh.explain_rank/1`: per view the divisions, per name the first rank, the step and
/// the number in the group. Ranks are cut after 1000 characters; rank_json() has them all.
RANKMESH_API std::string explain_rank_json(const MeshPlan& plan, Rank rank);

/// Which dimension varies fastest, the strides, and where the neighbours of a rank are.
/// O(dimensions).
RANKMESH_API std::string explain_order_text(const MeshPlan& plan);
/// Schema `rankmesh.explain_order/1`: per view the dimensions, fastest first.
RANKMESH_API std::string explain_order_json(const MeshPlan& plan);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of a mesh, written out so that a reader can check each step with pencil and paper.
#pragma once

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Explains the coordinates of a rank by division and remainder, view by view, and then explains
/// each group of the rank. The schema is `rankmesh.explain_rank/1`. It has the divisions for each
/// view, and the first rank, the step and the index in the group for each name. Lists of ranks are
/// cut after 1000 characters. The report rank() has the complete lists. The table holds the
/// divisions. Cost: O(names x dimensions).
/// @throws UsageError if the rank is outside the world.
RANKMESH_API Document explain_rank(const MeshPlan& plan, Rank rank);

/// Explains which dimension varies fastest, the strides, and the neighbours of a rank. The schema
/// is `rankmesh.explain_order/1`. It has the dimensions of each view, and the dimension that varies
/// fastest comes first. Cost: O(dimensions).
RANKMESH_API Document explain_order(const MeshPlan& plan);

}  // namespace rankmesh::report

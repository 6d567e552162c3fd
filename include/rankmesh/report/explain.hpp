// SPDX-License-Identifier: BSD-3-Clause
// Explains the arithmetic of a mesh. A reader can check each step with pencil and paper.
#pragma once

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Explains the coordinates of a rank, and then each group of the rank. For each view, the report
/// shows the divisions and remainders from which the coordinates follow.
///
/// The schema is `rankmesh.explain_rank/1`. JSON contains the divisions of each view. For each
/// family, JSON contains the first rank and the step of the group, and the index of the rank in the
/// group. Lists of ranks are cut after 1000 characters; the report rank() has the complete lists.
/// The table contains the divisions. The cost is O(names x dimensions).
/// @throws UsageError if the rank is outside the world.
RANKMESH_API Document explain_rank(const MeshPlan& plan, Rank rank);

/// Explains the order of the ranks: which dimension varies fastest, what the strides are, and which
/// ranks are neighbours. The schema is `rankmesh.explain_order/1`. JSON contains the dimensions of
/// each view, beginning with the dimension that varies fastest. The cost is O(dimensions).
RANKMESH_API Document explain_order(const MeshPlan& plan);

}  // namespace rankmesh::report

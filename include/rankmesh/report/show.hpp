// SPDX-License-Identifier: BSD-3-Clause
// The mesh as a whole: the grid if it is small, the names always.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports the mesh, with the schema `rankmesh.show/1`. Text has less than 50 lines whatever the
/// size of the mesh. The table has a row per name. Cost: O(names x dimensions); with live facts
/// O(names x ranks).
/// @param live  may be null; adds nodes to the grid and to the table, and to JSON one entry per
///              rank.
RANKMESH_API Document show(const MeshPlan& plan, const LiveFacts* live);

/// Returns the views of the plan as a mesh string: `pp=2,dp=4,tp=8 | pp=2,ep=32`.
RANKMESH_API std::string views_text(const MeshPlan& plan);

}  // namespace rankmesh::report

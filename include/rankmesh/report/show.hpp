// SPDX-License-Identifier: BSD-3-Clause
// The mesh as a whole. The report has the grid if the grid is small, and it always has the names.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports the mesh, with the schema `rankmesh.show/1`. The text has fewer than 50 lines, whatever
/// the size of the mesh. The table has a row for each name. The cost is O(names x dimensions), or
/// O(names x ranks) with live facts.
/// @param live  may be null. If it is not null, the grid and the table show the nodes, and JSON has
/// one entry for each rank.
RANKMESH_API Document show(const MeshPlan& plan, const LiveFacts* live);

/// Returns the views of the plan as a mesh string: `pp=2,dp=4,tp=8 | pp=2,ep=32`.
RANKMESH_API std::string views_text(const MeshPlan& plan);

}  // namespace rankmesh::report

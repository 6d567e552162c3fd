// SPDX-License-Identifier: BSD-3-Clause
// Reports the mesh as a whole. The report always lists the families. If the mesh is small, the
// report also draws its grid of ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports the mesh, with the schema `rankmesh.show/1`. The text has fewer than 50 lines,
/// regardless of the size of the mesh. The table has a row for each family. The cost is O(names x
/// dimensions), or O(names x ranks) with live facts.
/// @param live  the facts of the running job, or null. With these facts, the grid and the table
/// show the nodes, and JSON has an entry for each rank.
/// @param width the width of the terminal, in columns. If the grid is wider, its remaining columns
/// are printed below it, unless the text would then have 50 lines or more.
/// @param machine the machine on which the mesh lies, or null. If it is given, the table says for
/// each level how many groups lie inside one unit, over how many units a group is spread at most,
/// and which groups are split. This costs as much as spread_of() for each name.
/// @throws UsageError if a rank has no slot on the machine.
RANKMESH_API Document show(const MeshPlan& plan, const LiveFacts* live,
                           std::size_t width = SIZE_MAX, const Machine* machine = nullptr);

/// Returns the views of the plan as a mesh string, for example `pp=2,dp=4,tp=8 | pp=2,ep=32`.
RANKMESH_API std::string views_text(const MeshPlan& plan);

}  // namespace rankmesh::report

// The mesh as a whole: the grid where it is small, the names always.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

struct ShowOptions {
  bool colour = false;              ///< text only: ANSI escapes
  const LiveFacts* live = nullptr;  ///< adds nodes to the grid and to the table
};

/// Under 50 lines whatever the size of the mesh. Cost: O(names x dimensions); with live facts
/// O(names x ranks).
RANKMESH_API std::string show_text(const MeshPlan& plan, const ShowOptions& options);
/// Schema `rankmesh.show/1`; with live facts one entry per rank.
RANKMESH_API std::string show_json(const MeshPlan& plan, const ShowOptions& options);
/// One row per name.
RANKMESH_API std::string show_csv(const MeshPlan& plan, const ShowOptions& options);

/// The views of the plan as a mesh string: `pp=2,dp=4,tp=8 | pp=2,ep=32`.
RANKMESH_API std::string views_text(const MeshPlan& plan);

}  // namespace rankmesh::report

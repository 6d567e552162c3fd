// SPDX-License-Identifier: BSD-3-Clause
// Reports which transport carries each operation, for every family of a mesh.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::report {

/// Facts that only a running job has.
struct RouteFacts {
  Placement placement;  ///< The node of each rank.
  /// Asks this rank's coordinator of the family `name` which transport it uses. Returns nothing if
  /// this rank has no such coordinator.
  std::function<std::optional<RouteExplanation>(const std::string& name, const RouteQuery&)>
      explain;
};

/// Reports the rules, numbered in the order in which they are tried. For every family, the report
/// then shows which operations, types and sizes use the same transport. Without live facts, the
/// nodes of a group are not known, so the report lists every transport that the group may use. The
/// schema is `rankmesh.routes/1`. The cost is O(names x rules). With live facts, the report costs
/// an additional O(names x ranks).
/// @param live  the facts of the running job, or null.
RANKMESH_API Document routes(const MeshPlan& plan, const RouteTable& table, const RouteFacts* live);

}  // namespace rankmesh::report

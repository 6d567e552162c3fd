// SPDX-License-Identifier: BSD-3-Clause
// Which transport carries which operation, for every name of a mesh.
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
  Placement placement;
  /// Returns the answer of this rank's coordinator of that name, or nothing if it has none.
  std::function<std::optional<RouteExplanation>(const std::string& name, const RouteQuery&)>
      explain;
};

/// Reports the rules, numbered in the order in which they are asked, then for every name the
/// operations, types and sizes that share a transport. Without `live` it is unknown which nodes a
/// group is on, so all transports that may serve are listed. The schema is `rankmesh.routes/1`.
/// Cost: O(names x rules); with live facts O(names x ranks) besides.
/// @param live  may be null.
RANKMESH_API Document routes(const MeshPlan& plan, const RouteTable& table, const RouteFacts* live);

}  // namespace rankmesh::report

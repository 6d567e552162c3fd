// SPDX-License-Identifier: BSD-3-Clause
// The transport that carries each operation, for every name of a mesh.
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
  /// Returns the answer of this rank's coordinator for `name`, or nothing if this rank has no such
  /// coordinator.
  std::function<std::optional<RouteExplanation>(const std::string& name, const RouteQuery&)>
      explain;
};

/// Reports the rules, which are numbered in the order in which they are tried. Then reports, for
/// every name, the operations, types and sizes that share a transport. Without `live` the nodes of
/// a group are not known, so the report lists all transports that may serve the group. The schema
/// is `rankmesh.routes/1`. The cost is O(names x rules), and O(names x ranks) more with live facts.
/// @param live  the facts of the running job, or null.
RANKMESH_API Document routes(const MeshPlan& plan, const RouteTable& table, const RouteFacts* live);

}  // namespace rankmesh::report

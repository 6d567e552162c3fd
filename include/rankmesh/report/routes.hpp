// Which transport carries what, for every name of a mesh.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::report {

/// What only a running job knows.
struct RouteFacts {
  Placement placement;
  /// The answer of the printing rank's coordinator of that name; nothing where it has none.
  std::function<std::optional<RouteExplanation>(const std::string& name, const RouteQuery&)>
      explain;
};

/// The rules, numbered in the order in which they are asked; then, for every name, the operations,
/// types and sizes that share a transport. Offline, where nobody knows which nodes a group is on,
/// all transports that may serve are listed. Cost: O(names x rules); with live facts O(names x
/// ranks) besides.
RANKMESH_API std::string routes_text(const MeshPlan& plan, const RouteTable& routes,
                                     const RouteFacts* live, bool colour);
/// Schema `rankmesh.routes/1`.
RANKMESH_API std::string routes_json(const MeshPlan& plan, const RouteTable& routes,
                                     const RouteFacts* live);

}  // namespace rankmesh::report

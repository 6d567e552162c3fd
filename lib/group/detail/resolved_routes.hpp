// SPDX-License-Identifier: BSD-3-Clause
// The rules of a mesh, resolved once for all groups that the rules do not distinguish.
#pragma once

#include <list>
#include <utility>
#include <vector>

#include "rankmesh/routes/route_table.hpp"

namespace rankmesh::detail {

/// Keeps the results of RouteTable::resolve(). Most groups of a mesh differ in nothing that a rule
/// tests, and each coordinator asks the same questions when it is created.
class ResolvedRoutes {
 public:
  /// @param routes  Must outlive this object.
  explicit ResolvedRoutes(const RouteTable& routes) : routes_{routes} {}

  [[nodiscard]] const RouteTable& table() const { return routes_; }
  /// Returns what RouteTable::resolve() returns. Valid as long as this object.
  const std::vector<RouteSegment>& resolve(const RouteScope& scope, const RouteQuery& query);

 private:
  struct Scope {
    RouteScope scope;
    std::list<std::pair<RouteQuery, std::vector<RouteSegment>>> answers;
  };
  [[nodiscard]] Scope& scope_like(const RouteScope& scope);

  const RouteTable& routes_;
  std::list<Scope> scopes_;
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Collects the routes of a mesh from all places where they can be written.
#pragma once

#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// Returns the rules in the order in which they are tried: first the rules of the program, then the
/// rules of the environment variable RANKMESH_ROUTES, then the rules of the mesh file, and last the
/// default rules. Each place may name a file of rules as `@PATH` instead. A relative path in a mesh
/// file is relative to the folder of the mesh file. The function is local, and it reads the
/// environment and files.
/// @param code  the rules of the program (MeshOptions::routes).
/// @throws SpecError if a rule is invalid, or if a rule is for a name that the plan does not have.
RANKMESH_API RouteTable routes_of(const MeshSpec& spec, const MeshPlan& plan,
                                  std::string_view code = {});

}  // namespace rankmesh

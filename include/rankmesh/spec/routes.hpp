// SPDX-License-Identifier: BSD-3-Clause
// Collects the routes of a mesh from all places where they can be written.
#pragma once

#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// Returns the rules in the order in which they are tried: those of the program, of the environment
/// variable RANKMESH_ROUTES, of the mesh file, and the defaults. Each place may name a file
/// instead, as `@PATH`; a relative path in a mesh file is relative to its folder. Local; reads the
/// environment and files.
/// @param code  the rules of the program (MeshOptions::routes).
/// @throws SpecError if a rule is invalid, or is for a name that the plan does not have.
RANKMESH_API RouteTable routes_of(const MeshSpec& spec, const MeshPlan& plan,
                                  std::string_view code = {});

}  // namespace rankmesh

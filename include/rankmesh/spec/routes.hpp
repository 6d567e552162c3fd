// SPDX-License-Identifier: BSD-3-Clause
// Collects the routes of a mesh from all places where they can be written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// Returns the rules of a mesh in the order in which they are tried:
/// 1. the rules of the program
/// 2. the rules of the environment variable RANKMESH_ROUTES
/// 3. the rules of the mesh file
/// 4. the default rules
///
/// The program, the variable and the mesh file may each name a file of rules (`@PATH`) instead of
/// rules. A relative path in a mesh file is relative to the folder of the mesh file. The function
/// is local. It reads the environment and files.
/// @param code  the rules of the program (MeshOptions::routes).
/// @param transports the names of the transports that the program adds (MeshOptions::transports).
/// The list is empty outside a program. Rules may then use the names that the mesh file lists.
/// @throws SpecError if a rule is invalid, if a rule is for a name that the plan does not have, or
/// if the program does not add a transport that the mesh file lists.
RANKMESH_API RouteTable
routes_of(const MeshSpec& spec, const MeshPlan& plan, std::string_view code = {},
          const std::optional<std::vector<std::string>>& transports = std::nullopt);

}  // namespace rankmesh

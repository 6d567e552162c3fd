// The routes of a mesh, from all places where they can be written.
#pragma once

#include <string_view>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

/// The rules in the order in which they are asked: those of the program (`code`,
/// MeshOptions::routes), of the environment variable RANKMESH_ROUTES, of the mesh file, the
/// defaults. Each place may name a file instead, as `@PATH`; in a mesh file a relative path begins
/// at its folder. Local; reads the environment.
/// @throws SpecError where rules are bad, or are for names that the plan does not have.
RANKMESH_API RouteTable routes_of(const MeshSpec& spec, const MeshPlan& plan,
                                  std::string_view code = {});

}  // namespace rankmesh

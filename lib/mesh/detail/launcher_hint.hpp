// SPDX-License-Identifier: BSD-3-Clause
// Tells a program that is alone in its world, although the launcher started several processes.
#pragma once

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Plans a mesh on so many ranks.
/// @throws SpecError if the mesh does not fit. If the launcher does not fit either, the error says
/// so, because a world of the right size is then a matter of the launcher.
MeshPlan plan_with_hint(const MeshSpec& spec, std::int64_t ranks);

/// Warns in the log of the mesh if the launcher started several processes, each of which is alone
/// in its world. Without a sink of the program, only the first process prints the warning, once.
void warn_of_launcher(const ControlPlane& control);

/// Warns on rank 0 if the launcher is known to end the job when a rank dies. For meshes that may
/// survive.
void warn_of_deaths(const ControlPlane& control);

}  // namespace rankmesh::detail

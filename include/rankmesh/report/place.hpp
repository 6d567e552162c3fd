// SPDX-License-Identifier: BSD-3-Clause
// Reports where the groups of a mesh lie on a machine.
#pragma once

#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports every group of the families with the number of units of each level that it touches. The
/// schema is `rankmesh.group_places/1`. Takes O(ranks x families) time and memory.
/// @throws UsageError if a rank has no slot on the machine.
RANKMESH_API Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                                   const Machine& machine);

}  // namespace rankmesh::report

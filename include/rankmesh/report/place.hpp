// SPDX-License-Identifier: BSD-3-Clause
// Reports over which units of a machine the groups of a mesh are spread.
#pragma once

#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports, for every group of the families and for each level, over how many units the group is
/// spread. The schema is `rankmesh.group_places/1`. Takes O(ranks x families) time and memory.
/// @throws UsageError if a rank has no slot on the machine.
RANKMESH_API Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                                   const Machine& machine);

}  // namespace rankmesh::report

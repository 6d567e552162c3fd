// SPDX-License-Identifier: BSD-3-Clause
// Lists every group of the families for which the user asks.
#pragma once

#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports the groups of the families in listing order, with the schema `rankmesh.groups/1`. The
/// groups are computed while they are written. Whatever the size of the mesh, at most 64 KiB of
/// output are held in memory.
/// @param live  the facts of the running job, or null. With these facts, the long CSV form has the
/// host, the node, the local rank and the process of each rank, and its device if it has one.
RANKMESH_API Document groups(const MeshPlan& plan, std::vector<NamedFamily> families,
                             const LiveFacts* live = nullptr);

}  // namespace rankmesh::report

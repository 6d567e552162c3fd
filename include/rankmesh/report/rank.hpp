// SPDX-License-Identifier: BSD-3-Clause
// One rank: its coordinates and its groups.
#pragma once

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports one rank, with the schema `rankmesh.rank/1`. In JSON a name that leaves the rank out is
/// absent, and a name with several groups of the rank has an array. The table has a row per group
/// of the rank.
/// @param live  may be null; adds the rank's host, local rank and process id, as columns too.
/// @throws UsageError if the rank is outside the world.
RANKMESH_API Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// One rank: its coordinates and its groups.
#pragma once

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports one rank, with the schema `rankmesh.rank/1`. JSON omits a name if no group of the name
/// contains the rank. If several groups of a name contain the rank, the name has an array. The
/// table has a row for each group of the rank.
/// @param live  may be null. If it is not null, the report has the host, the local rank and the
/// process id of the rank, and the table has columns for them.
/// @throws UsageError if the rank is outside the world.
RANKMESH_API Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live);

}  // namespace rankmesh::report

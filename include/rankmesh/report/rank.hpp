// One rank: its coordinates and its groups.
#pragma once

#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// @param live  may be null; adds the rank's host, node-local rank and process id.
/// @throws UsageError where the rank is outside the world.
RANKMESH_API std::string rank_text(const MeshPlan& plan, Rank rank, const LiveFacts* live);
/// Schema `rankmesh.rank/1`. Names that leave the rank out are absent; a name with several groups
/// of the rank gives an array.
RANKMESH_API std::string rank_json(const MeshPlan& plan, Rank rank, const LiveFacts* live);
/// One row per group of the rank; live facts are further columns.
RANKMESH_API std::string rank_csv(const MeshPlan& plan, Rank rank, const LiveFacts* live);

}  // namespace rankmesh::report

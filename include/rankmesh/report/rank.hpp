// SPDX-License-Identifier: BSD-3-Clause
// Reports the coordinates and the groups of one rank.
#pragma once

#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/report/format.hpp"

namespace rankmesh::report {

/// Reports one rank, with the schema `rankmesh.rank/1`. In JSON, a family is omitted if none of its
/// groups contains the rank. If several groups of a family contain the rank, the value of the
/// family is an array. The table has a row for each group of the rank.
/// @param live  the facts of the running job, or null. With these facts, the report also contains
/// the host, the local rank and the process ID of the rank. CSV has additional columns for these
/// three values.
/// @throws UsageError if the rank is outside the world, or has no slot on the machine.
/// @param machine  the machine on which the mesh lies, or null. With it, the report also contains
/// the host, the slot, the GPU and its nearest network interface, and for each group the number of
/// units that it touches.
RANKMESH_API Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live,
                           const Machine* machine = nullptr);

/// Reports several ranks, with the schema `rankmesh.ranks/1`. The JSON field `ranks` lists the
/// fields of rank() for each of them. The table has the rows of all ranks.
/// @param live, machine  as for rank().
/// @throws UsageError if a rank is outside the world, or has no slot on the machine.
RANKMESH_API Document ranks(const MeshPlan& plan, const std::vector<Rank>& ranks,
                            const LiveFacts* live, const Machine* machine = nullptr);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// Reports how many groups and communicators a mesh creates. For comparison, the report also says
// how many would be created if every rank created every group.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/count.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the counts of a plan, with the schema `rankmesh.count/1`. In JSON, a figure per rank is
/// an object with the fields `least` and `most`. If the figure is the value of rank 0 only, the
/// object also has the field `"rank": 0`. The table prints such a figure as `least-most`, or as one
/// number if both values are equal.
/// @param machine  a machine with a slot for each rank, or null. With a machine, the report says
/// how many of the groups lie inside one unit of each level (in JSON: `machine` and
/// `groups_inside`).
/// @throws UsageError if a rank has no slot.
RANKMESH_API Document count(const MeshPlan& plan, const PlanCounts& counts,
                            const Machine* machine = nullptr);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// Reports how many groups and communicators a mesh creates. For comparison, the report also says
// how many would be created if every rank created every group.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/count.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the counts of a plan, with the schema `rankmesh.count/1`. In JSON, a figure per rank is
/// an object with the fields `least` and `most`. If the figure is the value of rank 0 only, the
/// object also has the field `"rank": 0`. The table prints such a figure as `least-most`, or as one
/// number if both values are equal.
RANKMESH_API Document count(const MeshPlan& plan, const PlanCounts& counts);

}  // namespace rankmesh::report

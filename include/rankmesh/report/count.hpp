// SPDX-License-Identifier: BSD-3-Clause
// The numbers of groups and communicators that a mesh creates, compared with the numbers if every
// rank created every group.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/count.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the counts of a plan, with the schema `rankmesh.count/1`. In JSON a figure per rank is
/// an object `{"least","most"}`, with the field `"rank": 0` if the figure covers only rank 0. In
/// the table a range is `least-most`.
RANKMESH_API Document count(const MeshPlan& plan, const PlanCounts& counts);

}  // namespace rankmesh::report

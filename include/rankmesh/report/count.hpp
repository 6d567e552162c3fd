// SPDX-License-Identifier: BSD-3-Clause
// How much a mesh creates, compared with creating every group on every rank.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/layout/count.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the counts of a plan, with the schema `rankmesh.count/1`. In JSON a figure per rank is
/// `{"least","most"}`, with `"rank": 0` if it is the figure of rank 0 alone. In the table a range
/// is `least-most`.
RANKMESH_API Document count(const MeshPlan& plan, const PlanCounts& counts);

}  // namespace rankmesh::report

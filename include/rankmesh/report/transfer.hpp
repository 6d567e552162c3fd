// SPDX-License-Identifier: BSD-3-Clause
// Reports the plan of a transfer.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::report {

/// Reports how many bytes a transfer moves, the lower bounds, and which pairs of ranks carry most.
/// The table has all pairs of ranks. The schema is `rankmesh.transfer/1`.
/// @param machine the machine, or null. Ranks are named with their nodes if it is given.
RANKMESH_API Document transfer(const TransferPlan& plan, const Machine* machine);

}  // namespace rankmesh::report

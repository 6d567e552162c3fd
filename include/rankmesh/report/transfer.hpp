// SPDX-License-Identifier: BSD-3-Clause
// Reports the plan of a transfer.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"
#include "rankmesh/transfer/plan.hpp"
#include "rankmesh/transfer/relabel.hpp"

namespace rankmesh::report {

/// Reports how many bytes a transfer moves, the lower bounds, and which pairs of ranks carry most.
/// The table has all pairs of ranks. The schema is `rankmesh.transfer/1`.
/// @param plan  a plan with at least one tensor.
/// @param machine  the machine, or null. If it is given, the table also has the nodes of the ranks.
/// @param relabelling  how the ranks of the places `to` were chosen, or null.
RANKMESH_API Document transfer(const TransferPlan& plan, const Machine* machine,
                               const Relabelling* relabelling = nullptr);

}  // namespace rankmesh::report

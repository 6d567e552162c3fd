// SPDX-License-Identifier: BSD-3-Clause
// Which groups of a rank are one group.
#pragma once

#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::detail {

/// Returns the same as MeshPlan::communicators(), and the groups of one rank, which have no
/// communicators and no duplicates.
std::vector<CommunicatorUse> shared_groups(const MeshPlan& plan, Rank rank);

}  // namespace rankmesh::detail

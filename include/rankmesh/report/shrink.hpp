// SPDX-License-Identifier: BSD-3-Clause
// Reports what remains of a mesh after a loss.
#pragma once

#include "rankmesh/export.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/shrink.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the loss, with the schema `rankmesh.shrink/1`. The table has a row for each rank of the
/// old mesh and each spare rank.
/// @param after  the result of rankmesh::shrink() for this plan and policy.
/// @param machine  the machine of the picture, or null.
RANKMESH_API Document shrink(const MeshPlan& plan, ShrinkPolicy policy, const Shrunk& after,
                             const Machine* machine = nullptr);

}  // namespace rankmesh::report

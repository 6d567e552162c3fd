// SPDX-License-Identifier: BSD-3-Clause
// Reports the bytes of one training step.
#pragma once

#include <span>

#include "rankmesh/export.hpp"
#include "rankmesh/place/model.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports what one rank sends per family in one step, with the formula and its source. The schema
/// is `rankmesh.estimate/1`.
/// @param machine the machine, or null. If it is given, the table also has the bytes that leave the
/// units of each level, summed over all ranks.
RANKMESH_API Document estimate(const MeshPlan& plan, const ModelFigures& model,
                               std::span<const FamilyVolume> volumes, const Machine* machine);

}  // namespace rankmesh::report

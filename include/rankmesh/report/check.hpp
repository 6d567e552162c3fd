// SPDX-License-Identifier: BSD-3-Clause
// Reports what the rules for placements have found.
#pragma once

#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/place/check.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the findings, with the schema `rankmesh.check/1`.
/// @param silenced  the ids of the rules that were not applied.
RANKMESH_API Document check(const MeshPlan& plan, const Machine& machine,
                            const std::vector<PlacementFinding>& findings,
                            const std::vector<std::string>& silenced);

}  // namespace rankmesh::report

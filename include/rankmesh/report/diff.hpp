// SPDX-License-Identifier: BSD-3-Clause
// The differences between two meshes.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/diff.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the differences, with the schema `rankmesh.diff/1`. The text is empty if there are no
/// differences. The table has a row for each family that differs. JSON contains every family. In
/// JSON, a figure that was not counted is null.
/// @param plan_a, plan_b  the meshes, for the picture.
/// @param a, b  the texts that describe the two meshes in the report.
RANKMESH_API Document diff(const PlanDiff& difference, const MeshPlan& plan_a,
                           const MeshPlan& plan_b, const std::string& a, const std::string& b);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// Reports the differences between two meshes.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/place/diff.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the differences, with the schema `rankmesh.diff/1`. The text is empty if there are no
/// differences. The table has a row for each family that differs. JSON contains every family. In
/// JSON, a figure that was not counted is null.
/// @param plan_a, plan_b  the meshes, for the places of their groups and for the picture.
/// @param a, b  the texts that describe the two meshes in the report.
/// @param machine  a machine with a slot for each rank of both meshes, or null. With a machine, the
/// report says how many groups of each family that differs lie inside one unit of each level, in A
/// and in B. JSON has the keys of show(): `machine`, and `place_a` and `place_b` for each family.
/// @throws UsageError if a rank has no slot.
RANKMESH_API Document diff(const PlanDiff& difference, const MeshPlan& plan_a,
                           const MeshPlan& plan_b, const std::string& a, const std::string& b,
                           const Machine* machine = nullptr);

}  // namespace rankmesh::report

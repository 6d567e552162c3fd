// How much a mesh creates, beside what creating every group on every rank would take.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/count.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::report {

RANKMESH_API std::string count_text(const MeshPlan& plan, const PlanCounts& counts, bool colour);
/// Schema `rankmesh.count/1`. A figure per rank is `{"least","most"}`; `"rank": 0` stands in it
/// where it is that rank's alone.
RANKMESH_API std::string count_json(const MeshPlan& plan, const PlanCounts& counts);
/// The columns of the text, `figure,rankmesh,every group on every rank`; a range is `least-most`.
RANKMESH_API std::string count_csv(const PlanCounts& counts);

}  // namespace rankmesh::report

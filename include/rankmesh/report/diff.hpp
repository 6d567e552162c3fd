// What differs between two meshes.
#pragma once

#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/diff.hpp"

namespace rankmesh::report {

/// Nothing where the diff is empty. `a` and `b` are what the reader calls the two.
RANKMESH_API std::string diff_text(const PlanDiff& diff, const std::string& a, const std::string& b,
                                   bool colour);
/// Schema `rankmesh.diff/1`: every name, the equal ones too. What was not counted is null.
RANKMESH_API std::string diff_json(const PlanDiff& diff, const std::string& a,
                                   const std::string& b);

}  // namespace rankmesh::report

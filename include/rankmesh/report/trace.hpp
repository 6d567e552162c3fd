// SPDX-License-Identifier: BSD-3-Clause
// Reports what the ranks of a job do, and for which ranks they wait.
#pragma once

#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/diagnosis.hpp"
#include "rankmesh/record/record.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the state of each rank, and then the diagnosis in sentences. The schema is
/// `rankmesh.trace/1`.
///
/// The records may belong to several meshes. Each mesh has a section of the text, and an object in
/// the JSON field `meshes`. The table for CSV contains the ranks of all meshes, without the
/// findings. In the text, ranks of a mesh of more than 16 ranks share a line if they do the same,
/// and each mesh takes at most 100 lines. This costs as much as record::diagnose().
[[nodiscard]] RANKMESH_API Document trace(std::vector<record::Record> records);

/// Reports one mesh, whose diagnosis is already known, in the same way.
[[nodiscard]] RANKMESH_API Document trace(const std::vector<record::Record>& records,
                                          const record::Diagnosis& diagnosis);

}  // namespace rankmesh::report

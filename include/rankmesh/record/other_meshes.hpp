// SPDX-License-Identifier: BSD-3-Clause
// What ranks do in other meshes of the same program.
#pragma once

#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// Adds to the record of a rank that is outside its mesh what its process waits for in another
/// mesh, as Record::wait. Without it, diagnose() would say that the rank is outside rankmesh, and
/// would not find ranks that wait for each other in different meshes.
///
/// Two records are those of one process if they have the same host and process id. The ranks that
/// the wait needs are known if all of them have a record in the own mesh too.
/// @param records  records of several meshes, in any order. If there is only one mesh, nothing
///                 happens. The cost is that of diagnose() for each mesh.
RANKMESH_API void add_waits_in_other_meshes(std::vector<Record>& records);

}  // namespace rankmesh::record

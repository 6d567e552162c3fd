// SPDX-License-Identifier: BSD-3-Clause
// Completes the records of one mesh with the waits of the same processes in other meshes.
#pragma once

#include <vector>

#include "rankmesh/record/record.hpp"

namespace rankmesh::record {

/// If a rank is outside its mesh, and its process waits in another mesh, stores this wait in
/// Record::wait. Without this function, diagnose() would say that the rank is outside rankmesh, and
/// would not find ranks that wait for each other in different meshes.
///
/// Two records belong to the same process if they have the same host, process id and
/// Record::process_origin. The ranks for which the process waits are known only if all of them also
/// have a record of the first mesh.
/// @param records  records of several meshes, in any order. If there is only one mesh, nothing
///                 happens. This costs as much as diagnose() for each mesh.
void add_waits_in_other_meshes(std::vector<Record>& records);

}  // namespace rankmesh::record

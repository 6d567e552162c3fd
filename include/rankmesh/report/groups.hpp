// SPDX-License-Identifier: BSD-3-Clause
// Every group of every name that is asked for.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the groups of the families in listing order, with the schema `rankmesh.groups/1`. The
/// groups are computed while they are written: at most 64 KiB are held back, whatever the size of
/// the mesh.
RANKMESH_API Document groups(std::int64_t world_size, std::vector<NamedFamily> families);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// Lists every group of the families for which the user asks.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/report/document.hpp"

namespace rankmesh::report {

/// Reports the groups of the families in listing order, with the schema `rankmesh.groups/1`. The
/// groups are computed while they are written. Whatever the size of the mesh, at most 64 KiB of
/// output are held in memory.
RANKMESH_API Document groups(std::int64_t world_size, std::vector<NamedFamily> families);

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
// How files of routes name a machine.
#pragma once

#include <cstdint>
#include <string>

#include "rankmesh/export.hpp"

namespace rankmesh {

/// Returns the text that names a machine in a route file, for example `4 cores, Open MPI v4.1.4,
/// rankmesh 1.0.0`. Rules that were measured on a machine with a different text may be wrong on
/// this machine. Local. MPI_Init is not needed.
/// @param cores  the number of cores of a node; see Placement::cores().
RANKMESH_API std::string routes_machine(std::int32_t cores);

}  // namespace rankmesh

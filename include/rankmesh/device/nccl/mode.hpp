// SPDX-License-Identifier: BSD-3-Clause
// Whether calls on NCCL communicators block.
#pragma once

#include <optional>

#include "rankmesh/device/nccl/library.hpp"

namespace rankmesh::nccl {

/// Returns the mode that the variable NCCL_COMM_BLOCKING gives to all communicators of the process,
/// regardless of their configuration: true if it is 1, false if it is 0, and nothing otherwise.
/// Like NCCL, the function looks for the variable first in the environment, then in the file that
/// NCCL_CONF_FILE names or in ~/.nccl.conf, and then in /etc/nccl.conf (envConfigOverride in
/// src/init.cc, initEnvFunc in src/misc/param.cc). As in NCCL, only the first call reads these
/// places; later calls return the same result. Local.
RANKMESH_API std::optional<bool> forced_blocking();

/// Returns whether communicators should block after their creation. In this case NCCL starts no
/// thread for a call, rankmesh does not poll the call, and CallWatch limits its duration. If
/// NCCL_COMM_BLOCKING does not set the mode, the result is false before NCCL 2.23: these versions
/// start no threads for calls on non-blocking communicators, and CallWatch cannot end a call.
/// @param wanted  GroupOptions::blocking
RANKMESH_API bool blocks_after_creation(const Library& library, bool wanted);

}  // namespace rankmesh::nccl

// SPDX-License-Identifier: BSD-3-Clause
// The processes of the job on this node, before they share memory.
#pragma once

#include <cstdint>
#include <map>

#include "process_stat.hpp"

namespace rankmesh::detail {

/// Returns the states of the processes that the launcher of this process has started on this node,
/// by the numbers that it has given to them, as launcher_rank() does. Processes with which the
/// launcher has started a script are left out. Local; reads all of /proc.
std::map<std::int64_t, ProcessState> states_of_launched();

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The facts of a running job, as text.
#pragma once

#include <string>

#include "rankmesh/report/format.hpp"

namespace rankmesh::report::detail {

inline constexpr std::size_t max_nodes = 8;

/// Returns at most max_nodes + 2 lines: the nodes with their ranks, processes and devices, then how
/// long NCCL took to start.
std::string nodes_text(const LiveFacts& live);

}  // namespace rankmesh::report::detail

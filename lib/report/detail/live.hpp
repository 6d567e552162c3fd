// SPDX-License-Identifier: BSD-3-Clause
// The facts of a running job, as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/live_facts.hpp"

namespace rankmesh::report::detail {

inline constexpr std::size_t max_nodes = 8;

/// Returns what NCCL chose, as text, and the ranks on which it chose this.
std::vector<std::pair<std::string, std::vector<Rank>>> nccl_groups(const LiveFacts& live);

/// Returns the nodes with their ranks, processes and devices (at most max_nodes + 1 lines), how
/// long NCCL took to start, and what it chose.
std::string nodes_text(const LiveFacts& live);

}  // namespace rankmesh::report::detail

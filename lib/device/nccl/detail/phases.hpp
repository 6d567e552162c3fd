// SPDX-License-Identifier: BSD-3-Clause
// What the phases of the NCCL bootstrap have in common.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/wait/wait_point.hpp"

namespace rankmesh::nccl {

/// Returns the point at which the members of a group wait for each other in a phase.
/// @param identity  A text that is the same on all members, and that no other bootstrap uses.
inline WaitPoint bootstrap_point(const std::string& name, const std::string& identity,
                                 const RankSet& ranks, std::string_view phase) {
  return WaitPoint::of(ranks, fmt::format("NCCL bootstrap of '{}': {}", name, phase),
                       fmt::format("{}|{}|{}", identity, phase, ranks.to_string()));
}

/// Runs a phase and adds its duration.
template <class Phase>
void timed(double& seconds, Phase&& phase) {
  const auto begin = std::chrono::steady_clock::now();
  phase();
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace rankmesh::nccl

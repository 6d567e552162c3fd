// SPDX-License-Identifier: BSD-3-Clause
// An assignment that fills a machine's tree from the outermost units inward.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "objective.hpp"

namespace rankmesh::detail {

/// Returns the slot of each rank. Each unit grows from a random rank: the next rank is always the
/// one that exchanges most with the ranks in the unit. The ranks of a unit are then divided among
/// the units inside it in the same way. Different states of `random` give different assignments.
/// Takes O(ranks^2 x levels) time.
[[nodiscard]] std::vector<std::int64_t> grown_assignment(const Objective& objective,
                                                         std::mt19937_64& random);

}  // namespace rankmesh::detail

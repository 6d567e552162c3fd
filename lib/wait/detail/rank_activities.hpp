// SPDX-License-Identifier: BSD-3-Clause
// What several ranks do, as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

/// A rank of a communicator, and what it does.
struct RankAndActivity {
  Rank rank;
  RankActivity activity;
};

/// Returns the predicate of a sentence about ranks: "is stopped", "wait in tp.barrier".
/// @param is_plural  Whether the subject is more than one rank.
std::string predicate(const RankActivity& activity, bool is_plural);

/// Describes what ranks do: `rank 5 (dp=0,tp=1) is stopped; ranks 6 (...), 7 (...) wait in ...`.
/// Ranks that do the same are named together, at most 32 in all.
std::string describe(const std::vector<RankAndActivity>& ranks, const RankNames& names);

}  // namespace rankmesh::detail

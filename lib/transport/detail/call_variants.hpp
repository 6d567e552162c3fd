// SPDX-License-Identifier: BSD-3-Clause
// The words in which members of a group that make different calls are listed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "transport/detail/block_counts.hpp"
#include "transport/detail/own_tags.hpp"

namespace rankmesh::detail {

/// The hint of a MismatchError about calls.
inline constexpr const char* mismatch_hint =
    "make the same calls, with the same arguments and in the same order, on all members of the "
    "group";
/// The hint of an error whose cause is on another rank.
inline constexpr const char* peer_hint =
    "the cause is on the rank that is named; the group is broken";

/// The members of a group, for messages.
struct GroupMembers {
  RankSet ranks;  ///< Ranks of the mesh, in group order.
  RankNames names;
  std::vector<std::string> coordinators;  ///< The names of its coordinators, see Call::family.
  GroupKey key{};

  /// Returns the name of a coordinator.
  [[nodiscard]] const std::string& name_of(std::size_t family) const {
    return coordinators[family < coordinators.size() ? family : 0];
  }
};

/// Lists the calls of the members with their ranks, the smallest set of ranks first:
/// `rank 5 (dp=0,tp=1): tp.barrier(), call 7; ranks 0-4: tp.all_reduce(3 x float32, sum), call 7`.
/// @param calls  The text of each member, in group order. Members with an empty text are left out.
/// @param counts  The counts of v-forms; null for other calls. Members that do not agree with many
///                others come first.
[[nodiscard]] std::string list_calls(const RankSet& ranks, const RankNames& names,
                                     const std::vector<std::string>& calls,
                                     const BlockCounts* counts = nullptr);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The members of a group, and the words in which their calls are listed if they differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/wait/rank_names.hpp"
#include "transport/detail/block_counts.hpp"
#include "transport/detail/own_tags.hpp"

namespace rankmesh::detail {

/// The hint of an error whose cause is on another rank.
inline constexpr const char* peer_hint =
    "the cause is on the rank that is named; the group is broken";

/// The members of a group, for messages.
struct GroupMembers {
  RankSet ranks;  ///< Ranks of the mesh, in group order.
  RankNames names;
  std::vector<std::string> coordinators;  ///< The names of its coordinators, see Call::name_index.
  GroupKey key{};

  /// Returns the name of a coordinator.
  [[nodiscard]] const std::string& name_of(std::size_t index) const {
    return coordinators[index < coordinators.size() ? index : 0];
  }
  /// Returns the rank of a member with its coordinates: `5 (dp=0,tp=1)`.
  [[nodiscard]] std::string rank_of(std::size_t member) const {
    return names(ranks.at(static_cast<std::int64_t>(member)));
  }
  /// Returns the text of a call: `tp.all_reduce(3 x float32, sum), call 7`.
  /// @param counts  The text of the counts of a v-form.
  [[nodiscard]] std::string text_of(const CallDescriptor& call, std::uint64_t number,
                                    const std::string& counts = {}) const;
  /// Returns the text of a member that makes no further calls.
  /// @param calls  How many it has made.
  /// @param why    The reason, if it has left without closing the group; empty otherwise.
  [[nodiscard]] std::string text_of_departure(std::uint64_t calls, std::string_view why) const;
  /// Lists the calls of the members with their ranks, the smallest set of ranks first:
  /// `rank 5 (dp=0,tp=1): tp.barrier(), call 7; ranks 0-4: tp.all_reduce(3 x float32, sum), call
  /// 7`.
  /// @param calls  The text of each member, in group order. Members with an empty text are left
  ///               out.
  /// @param counts  The counts of v-forms; null for other calls. Members that do not agree with
  ///                many others come first.
  [[nodiscard]] std::string list(const std::vector<std::string>& calls,
                                 const BlockCounts* counts = nullptr) const;
};

/// Returns the error of members that make different calls.
[[nodiscard]] MismatchError different_calls(std::string text);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// What ranks do, as others see it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/wait/rank_names.hpp"

namespace rankmesh::detail {

/// What a rank does, as far as it is known.
struct RankStatus {
  enum class Kind : std::uint8_t {
    silent,     ///< The rank is alive, and nothing more is known.
    waits,      ///< It waits in `text`.
    in_call,    ///< It is in the call `text`, which MPI carries.
    outside,    ///< It is not in rankmesh.
    stopped,    ///< A signal or a debugger has stopped it.
    ended,      ///< Its process has ended, and it had not closed the mesh.
    failed,     ///< An exception has destroyed its mesh; `text` is the reason, or empty.
    destroyed,  ///< It has destroyed its mesh without close().
    closed,     ///< It has closed its mesh.
  };
  Kind kind = Kind::silent;
  std::uint64_t key = 0;  ///< Of the wait point, if it waits.
  std::string text{};
  std::string ranks{};  ///< If it waits in a collective: its members, if they are known.
  /// If it waits: how many calls it has made of the group that asks, if this is known.
  std::optional<std::uint64_t> calls{};

  /// Whether the rank will never reach the wait.
  [[nodiscard]] bool is_end() const { return kind == Kind::ended || kind == Kind::failed; }
};

/// A rank of a communicator, and what it does.
struct StatusOfRank {
  Rank rank;
  RankStatus status;
};

/// Returns the predicate of a sentence about ranks: "is stopped", "wait in tp.barrier".
/// @param is_plural  Whether the subject is more than one rank.
std::string predicate(const RankStatus& status, bool is_plural);

/// Describes what ranks do: `rank 5 (dp=0,tp=1) is stopped; ranks 6 (...), 7 (...) wait in ...`.
/// Ranks that do the same are named together, at most 32 in all.
std::string describe(const std::vector<StatusOfRank>& ranks, const RankNames& names);

}  // namespace rankmesh::detail

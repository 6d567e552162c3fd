// SPDX-License-Identifier: BSD-3-Clause
// A place in the program where several ranks wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// What sets the time limit of a wait. Errors name it.
enum class TimeLimit : std::uint8_t {
  timeout,   ///< RANKMESH_TIMEOUT, or an option of the mesh or of a family.
  deadline,  ///< RANKMESH_DEADLINE, or the option `deadline`.
  argument,  ///< An argument of the call that waits.
};

/// Describes a wait by its activity and its members. All members compute the same `key`. Two ranks
/// wait for the same activity if their keys are equal.
struct RANKMESH_API WaitPoint {
  std::uint64_t key = 0;  ///< Ranks with equal keys wait for the same activity.
  /// The name of the activity in messages. The name may differ between members.
  std::string activity{};
  std::vector<int> members{};  ///< The members, as ranks of the monitor's communicator.
  /// Points of one scope fail together: if a member gives up one of them, the waits of the others
  /// at all of them end, also those that begin later. The operations of a group have one scope,
  /// which is the same on all members. 0: the point has no scope.
  std::uint64_t scope = 0;
  /// Says whether the members may wait under the same key again after a failure. A member that
  /// gives up then ends only the waits that have begun.
  bool may_repeat = false;
  /// Whether the members wait in a call of a group, which has an entry of its own in the record.
  bool is_call = false;
  /// Whether this thread waits in a call that has entered the mesh. A wait outside the mesh must
  /// not open a mesh that is in a call of another thread.
  bool is_in_mesh = true;
  /// What sets the time limit of this rank's wait.
  TimeLimit limit = TimeLimit::timeout;
  /// Returns the members without which the wait cannot end, because they have not reached it yet.
  /// It is called during the wait. If the function is null or returns nothing, these members are
  /// not known, and the wait cannot be recognised as part of a deadlock.
  std::function<std::vector<int>()> needed{};
  /// Asked before this rank gives up the wait and tells the others. Returns false if the end of the
  /// wait is decided already: it is complete, and other members may have gone on, or another member
  /// has given up. The condition of the wait then holds, or throws why. Once the function has
  /// returned true, no member completes the wait. If it is null, a rank may always give up.
  std::function<bool()> may_give_up{};

  /// Creates a wait point for a set of ranks.
  /// @param identity  a text that is the same on all members. Its hash is the key.
  static WaitPoint of(const RankSet& ranks, std::string activity, std::string_view identity);
  /// Creates a wait point for a list of ranks.
  static WaitPoint of(std::vector<int> members, std::string activity, std::string_view identity);
  /// Creates a wait point for the ranks 0 to count-1. The hash of the activity is the key.
  static WaitPoint of_all(int count, std::string activity);
};

}  // namespace rankmesh

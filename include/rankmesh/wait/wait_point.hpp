// A place in the program where several ranks wait for each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// What is waited for, and by whom. All members build the same `key`; it decides whether two ranks
/// wait for the same thing.
struct RANKMESH_API WaitPoint {
  std::uint64_t key = 0;
  std::string activity;      ///< For messages; it may differ between members.
  std::vector<int> members;  ///< Ranks of the monitor's communicator.

  /// The ranks of a set. @param identity  Hashed into the key.
  static WaitPoint of(const RankSet& ranks, std::string activity, std::string_view identity);
  /// Ranks 0 to count-1. The activity is the identity.
  static WaitPoint of_all(int count, std::string activity);
};

}  // namespace rankmesh

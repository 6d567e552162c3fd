// SPDX-License-Identifier: BSD-3-Clause
// The numbers of dynamic groups.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>

#include "rankmesh/export.hpp"

namespace rankmesh::detail {

/// What a member of a new group tells the other members before they create it. It is plain data.
struct GroupOffer {
  std::uint64_t next = 0;  ///< A number above all that the member uses.
  /// Which of the first numbers of dynamic groups the member uses: one bit each.
  std::array<std::uint64_t, 4> used{};
};

/// The numbers of the dynamic groups of this rank; see GroupDescription::number. They follow the
/// numbers of the groups of the plan. The members of a new group agree on the lowest number that
/// none of them uses, and use it until they close the group. All functions are local.
class RANKMESH_API GroupNumbers {
 public:
  /// @param of_plan  The highest number of a group of the plan; the same on all ranks.
  explicit GroupNumbers(std::int64_t of_plan) : first_{of_plan + 1} {}

  /// Returns what this rank tells the other members of a new group.
  [[nodiscard]] GroupOffer offer() const;
  /// Takes a number for a new group. The same on all members, because all of them have the same
  /// offers. If all numbers of GroupOffer::used are in use, the number is the highest
  /// GroupOffer::next.
  /// @param others  The offers of the other members; this rank has sent them offer().
  std::int64_t take(std::span<const GroupOffer> others);
  /// Gives back the number of a group. No message of the group may be under way to this rank or
  /// from it, because another group may get the number, and with it the tags.
  void give_back(std::int64_t number) { used_.erase(number); }

 private:
  std::int64_t first_;
  std::set<std::int64_t> used_;
};

}  // namespace rankmesh::detail

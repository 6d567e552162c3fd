// SPDX-License-Identifier: BSD-3-Clause
// Says over which units of a machine the groups of a family are spread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// How the groups of a family are spread over the units of one level, for example over nodes.
struct LevelSpread {
  std::int64_t inside = 0;      ///< the number of groups that lie inside one unit
  std::int64_t most_units = 0;  ///< the largest number of units of one group
  std::int64_t split = 0;       ///< the number of groups with ranks in several units
  /// The numbers of the groups that are split, as ranges `first, last` in ascending order. At most
  /// 16 ranges are kept.
  std::vector<std::pair<std::int64_t, std::int64_t>> split_groups{};
};

/// Returns the numbers of the groups that are split, such as `0-2,5`. A list of which only the
/// beginning was kept ends in `,...`.
[[nodiscard]] std::string split_numbers(const LevelSpread& spread);

/// Returns how the groups of a family are spread over the machine, with one entry per level.
///
/// Takes O(groups x levels) time if the family is strided, the machine is regular and `slots` is
/// empty; otherwise O(ranks x levels) time and O(units) memory.
/// @param slots  the slot of each rank. If it is empty, rank r is in slot r.
/// @throws UsageError if a rank of the family has no slot on the machine.
[[nodiscard]] std::vector<LevelSpread> spread_of(const GroupFamily& family, const Machine& machine,
                                                 std::span<const std::int64_t> slots = {});

/// Returns the number of units of a level that have ranks of the group. Takes O(size of the
/// group) time.
[[nodiscard]] std::int64_t units_of(const RankSet& group, const Machine& machine, std::size_t level,
                                    std::span<const std::int64_t> slots = {});

}  // namespace rankmesh

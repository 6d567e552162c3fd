// SPDX-License-Identifier: BSD-3-Clause
// Where the groups of a family lie on a machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh {

/// How the groups of a family lie on the units of one level, for example on nodes.
struct LevelSpread {
  std::int64_t inside = 0;      ///< the number of groups that lie inside one unit
  std::int64_t most_units = 0;  ///< the units of the group that touches most units
  std::int64_t split = 0;       ///< the number of groups that touch several units
  /// The numbers of the groups that are split, as ranges `first, last` in ascending order. At most
  /// 16 ranges are kept.
  std::vector<std::pair<std::int64_t, std::int64_t>> split_groups{};
};

/// Returns how the groups of a family lie on the machine, with one entry per level.
///
/// Takes O(groups x levels) time if the family is strided, the machine is regular and `slots` is
/// empty; otherwise O(ranks x levels) time and O(units) memory.
/// @param slots  the slot of each rank. If it is empty, rank r is in slot r.
/// @throws UsageError if a rank of the family has no slot on the machine.
[[nodiscard]] RANKMESH_API std::vector<LevelSpread> spread_of(
    const GroupFamily& family, const Machine& machine, std::span<const std::int64_t> slots = {});

/// Returns the number of units of a level that a group touches. Takes O(size of the group) time.
[[nodiscard]] RANKMESH_API std::int64_t units_of(const RankSet& group, const Machine& machine,
                                                 std::size_t level,
                                                 std::span<const std::int64_t> slots = {});

}  // namespace rankmesh

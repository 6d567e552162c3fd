// SPDX-License-Identifier: BSD-3-Clause
// Visits those groups of a family that can lie differently on the units of a machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh::detail {

/// Calls `visit(group, count)` for one group of each kind; `count` groups are of this kind. All
/// groups of a strided family are translates of one another. Therefore two groups that begin at the
/// same offset in a unit of a regular level touch units in the same way. Other families and levels
/// are visited group by group.
template <class Visit>
void visit_distinct_groups(const GroupFamily& family, const Machine& machine, std::size_t level,
                           Visit&& visit) {
  const std::int64_t size = machine.levels()[level].size;
  const RankSet* first_ranks = family.first_ranks();
  if (size == 0 || first_ranks == nullptr || size > (std::int64_t{1} << 22)) {
    for (std::int64_t g = 0; g < family.group_count(); ++g) visit(g, std::int64_t{1});
    return;
  }
  const Divider by_size{size};
  std::vector<std::pair<std::int64_t, std::int64_t>> kinds(static_cast<std::size_t>(size));
  std::int64_t g = 0;
  first_ranks->for_each([&](Rank first) {
    auto& [group, count] =
        kinds[static_cast<std::size_t>(first.value() - by_size.quotient(first.value()) * size)];
    if (count++ == 0) group = g;
    ++g;
  });
  for (const auto& [group, count] : kinds)
    if (count > 0) visit(group, count);
}

}  // namespace rankmesh::detail

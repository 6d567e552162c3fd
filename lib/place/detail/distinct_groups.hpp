// SPDX-License-Identifier: BSD-3-Clause
// Visits the groups of a family that can differ in their place on a machine.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh::detail {

/// Calls `visit(group, count)` for one group of each kind, of which there are `count`. All groups
/// of a strided family are translates of one another, so two groups that begin at the same offset
/// in a unit of a regular level lie alike. Other families and levels are visited group by group.
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

// SPDX-License-Identifier: BSD-3-Clause
// Visits those groups of a family that can lie differently on the units of a machine.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/machine/machine.hpp"

namespace rankmesh::detail {

/// Calls `visit(group, twin)` for each group in order; `twin` is the first group that touches the
/// units of the level in the same way. All groups of a strided family are translates of one
/// another. Therefore two groups that begin at the same offset in a unit of a regular level are
/// alike. In other families and levels, each group is its own twin.
template <class Visit>
void visit_twins(const GroupFamily& family, const Machine& machine, std::size_t level,
                 Visit&& visit) {
  const std::int64_t size = machine.levels()[level].size;
  const RankSet* first_ranks = family.first_ranks();
  if (size == 0 || first_ranks == nullptr || size > (std::int64_t{1} << 22)) {
    for (std::int64_t g = 0; g < family.group_count(); ++g) visit(g, g);
    return;
  }
  const Divider by_size{size};
  std::vector<std::int64_t> twins(static_cast<std::size_t>(size), -1);  // by offset
  std::int64_t g = 0;
  first_ranks->for_each([&](Rank first) {
    const std::int64_t offset = first.value() - by_size.quotient(first.value()) * size;
    std::int64_t& twin = twins[static_cast<std::size_t>(offset)];
    if (twin < 0) twin = g;
    visit(g++, twin);
  });
}

/// Calls `visit(group, count)` for the first group of each kind; `count` groups are of this kind.
template <class Visit>
void visit_distinct_groups(const GroupFamily& family, const Machine& machine, std::size_t level,
                           Visit&& visit) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(family.group_count()));
  visit_twins(family, machine, level,
              [&](std::int64_t, std::int64_t twin) { ++counts[static_cast<std::size_t>(twin)]; });
  for (std::size_t g = 0; g < counts.size(); ++g)
    if (counts[g] > 0) visit(static_cast<std::int64_t>(g), counts[g]);
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/picture_cells.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace rankmesh::report {

std::int64_t detail::slot_of(const PictureState& state, std::int64_t rank) {
  return state.slots.empty() ? rank : state.slots[static_cast<std::size_t>(rank)];
}

std::vector<detail::CellGroups> detail::cells_of(const Machine& machine, std::size_t cell_level,
                                                 std::size_t mark_level, const PictureState& state,
                                                 const std::vector<std::int64_t>& groups) {
  const bool are_slots = cell_level == machine.levels().size();
  const std::int64_t count = are_slots ? machine.slot_count() : machine.unit_count(cell_level);
  std::vector<CellGroups> cells(static_cast<std::size_t>(count));
  std::map<std::int64_t, std::pair<std::int64_t, bool>> home;  // the first unit; leaves it
  for (std::int64_t r = 0; r < state.world_size; ++r) {
    const std::int64_t slot = slot_of(state, r);
    CellGroups& cell =
        cells[static_cast<std::size_t>(are_slots ? slot : machine.unit(cell_level, slot))];
    cell.ranks.push_back(r);
    const std::int64_t group = groups[static_cast<std::size_t>(r)];
    if (group < 0) continue;
    cell.groups.push_back(group);
    const std::int64_t unit = machine.unit(mark_level, slot);
    auto& [first, leaves] = home.try_emplace(group, unit, false).first->second;
    leaves = leaves || first != unit;
  }
  for (CellGroups& cell : cells) {
    std::ranges::sort(cell.groups);
    const auto repeated = std::ranges::unique(cell.groups);
    cell.groups.erase(repeated.begin(), repeated.end());
    cell.leaving = std::ranges::count_if(cell.groups,
                                         [&](std::int64_t group) { return home.at(group).second; });
  }
  return cells;
}

}  // namespace rankmesh::report

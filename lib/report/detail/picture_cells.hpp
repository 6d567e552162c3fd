// SPDX-License-Identifier: BSD-3-Clause
// What the cells of a picture show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/picture.hpp"

namespace rankmesh::report::detail {

/// The ranks in a cell, and their groups.
struct CellGroups {
  std::vector<std::int64_t> ranks{};
  std::vector<std::int64_t> groups{};  ///< ascending, each once
  std::int64_t leaving = 0;  ///< the number of these groups that leave the unit of `mark_level`
};

/// Returns the slot of a rank.
std::int64_t slot_of(const PictureState& state, std::int64_t rank);

/// Returns what each unit of a level shows.
/// @param cell_level  the level of the cells; the number of levels, if each slot is a cell.
/// @param mark_level  groups that leave their unit of this level are counted.
/// @param groups  the group of each rank, or -1.
std::vector<CellGroups> cells_of(const Machine& machine, std::size_t cell_level,
                                 std::size_t mark_level, const PictureState& state,
                                 const std::vector<std::int64_t>& groups);

}  // namespace rankmesh::report::detail

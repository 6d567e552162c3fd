// SPDX-License-Identifier: BSD-3-Clause
// What the drawing and the page of a picture have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/machine/machine.hpp"
#include "report/live_facts.hpp"
#include "report/picture.hpp"
#include "writer.hpp"

namespace rankmesh::report::detail {

/// Returns a state with all families of a plan.
PictureState state_of(const MeshPlan& plan);

/// Returns a picture with one state. It has copies of what it draws, which are small.
/// @param machine  the machine, or null.
Picture picture_of(const MeshPlan& plan, const Machine* machine,
                   std::vector<std::string> notes = {});
/// Returns the nodes of a job as a machine.
Machine machine_of(const LiveFacts& live);

/// Returns the boxes of a picture: the machine, or the outer dimensions of the first view. If there
/// are more than 256 outermost boxes, consecutive ones are put into further boxes.
Machine boxes_of(const Picture& picture);

/// Returns the families of a state that are drawn: those that do not overlap and have groups of
/// several ranks, each set of groups once.
std::vector<NamedFamily> drawn_families(const PictureState& state);

/// Returns the group of each rank, or -1 for a rank in no group.
std::vector<std::int64_t> groups_of_ranks(const GroupFamily& family, std::int64_t world_size);

void write_svg(const Picture& picture, Writer& out);
void write_picture_page(const Picture& picture, Writer& out);

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

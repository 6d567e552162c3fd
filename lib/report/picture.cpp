// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

constexpr std::int64_t most_outer_boxes = 256;
constexpr std::int64_t most_named_boxes = 16384;

std::int64_t slots_of(const Picture& picture) {
  std::int64_t slots = 1;
  for (const PictureState& state : picture.states) slots = std::max(slots, state.world_size);
  return slots;
}

// The coordinates of a box along the outer dimensions, for example `pp=1,dp=0`.
std::vector<std::string> box_names(const Layout& view, std::size_t outer, std::int64_t boxes) {
  std::vector<std::string> names;
  for (std::int64_t b = 0; b < boxes; ++b) {
    std::string name;
    std::int64_t rest = b;
    for (std::size_t d = outer + 1; d-- > 0;) {
      const Layout::Dimension& dimension = view.dimensions()[d];
      name = fmt::format("{}={}{}{}", dimension.name, rest % dimension.size,
                         name.empty() ? "" : ",", name);
      rest /= dimension.size;
    }
    names.push_back(std::move(name));
  }
  return names;
}

// Each dimension but the last one divides the ranks into boxes, if they are numbered row by row.
std::vector<MachineLevel> levels_of(const Picture& picture, std::int64_t slots) {
  std::vector<MachineLevel> levels;
  const std::vector<Layout>& views = picture.states.front().views;
  if (!views.empty() && views.front().size() == slots &&
      views.front().ranks() == RankSet::range(0, slots)) {
    std::int64_t size = slots;
    for (std::size_t d = 0; d + 1 < views.front().dimensions().size(); ++d) {
      const Layout::Dimension& dimension = views.front().dimensions()[d];
      if (dimension.size == 1) continue;
      size /= dimension.size;
      if (size == 1 || slots / size > most_named_boxes) break;
      levels.push_back({.name = dimension.name + " part",
                        .kind = LevelKind::network,
                        .size = size,
                        .names = box_names(views.front(), d, slots / size)});
    }
  }
  if (levels.empty())
    levels.push_back({.name = "mesh", .size = slots, .names = {std::string{"all ranks"}}});
  levels.back().kind = LevelKind::node;
  return levels;
}

// Puts equally many consecutive units of the outermost level into each box.
Machine with_blocks(Machine machine) {
  const std::int64_t units = machine.unit_count(0);
  if (units <= most_outer_boxes) return machine;
  std::int64_t in_block = 2;
  while (units / in_block > most_outer_boxes / 4) in_block *= 2;
  const MachineLevel& inner = machine.levels().front();
  MachineLevel block{.name = "block", .kind = LevelKind::network};
  if (inner.size > 0) {
    block.size = inner.size * in_block;
  } else {
    for (const std::int32_t unit : inner.units)
      block.units.push_back(unit / static_cast<std::int32_t>(in_block));
  }
  for (std::int64_t first = 0; first < units; first += in_block)
    block.names.push_back(fmt::format("{} - {}", machine.unit_name(0, first),
                                      machine.unit_name(0, std::min(first + in_block, units) - 1)));
  std::vector<MachineLevel> levels = machine.levels();
  levels.insert(levels.begin(), std::move(block));
  return Machine{machine.slot_count(), std::move(levels)};
}

}  // namespace

PictureState detail::state_of(const MeshPlan& plan) {
  PictureState state{.world_size = plan.world_size(), .views = plan.views()};
  for (const GroupFamily& family : plan.families())
    state.families.emplace_back(family.name(), family);
  return state;
}

Picture detail::picture_of(const MeshPlan& plan, const Machine* machine,
                           std::vector<std::string> notes) {
  Picture picture{.title = views_text(plan), .notes = std::move(notes), .states = {state_of(plan)}};
  if (machine != nullptr) picture.machine = *machine;
  return picture;
}

Machine detail::machine_of(const LiveFacts& live) {
  MachineLevel nodes{.name = "node", .names = live.hosts};
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r)
    nodes.units.push_back(live.placement.node(r));
  return Machine{live.placement.world_size(), {std::move(nodes)}};
}

Machine detail::boxes_of(const Picture& picture) {
  if (picture.machine) return with_blocks(*picture.machine);
  const std::int64_t slots = slots_of(picture);
  return with_blocks(Machine{slots, levels_of(picture, slots)});
}

std::vector<NamedFamily> detail::drawn_families(const PictureState& state) {
  std::vector<NamedFamily> result;
  for (const NamedFamily& named : state.families) {
    const GroupFamily& family = named.second;
    if (family.group_size() < 2 || family.coverage(state.world_size) == Coverage::overlapping)
      continue;
    const bool is_repeated = std::ranges::any_of(
        result, [&](const NamedFamily& other) { return other.second.has_same_groups(family); });
    if (!is_repeated) result.push_back(named);
  }
  return result;
}

std::vector<std::int64_t> detail::groups_of_ranks(const GroupFamily& family,
                                                  std::int64_t world_size) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(world_size), -1);
  if (const RankSet* all = family.in_sequence()) {
    std::int64_t i = 0;
    all->for_each([&](Rank rank) { result[rank.to_size()] = i++ / family.group_size(); });
    return result;
  }
  for (std::int64_t g = 0; g < family.group_count(); ++g)
    family.group(g).for_each([&](Rank rank) { result[rank.to_size()] = g; });
  return result;
}

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

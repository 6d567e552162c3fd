// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/machine/machine.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

// Numbers the units in the order of their lowest slots, and moves their names along.
void renumber(MachineLevel& level) {
  std::vector<std::int32_t> number;
  std::vector<std::string> names;
  std::int32_t next = 0;
  for (std::int32_t& unit : level.units) {
    if (unit < 0 || (!level.names.empty() && std::cmp_greater_equal(unit, level.names.size())))
      throw SpecError{fmt::format("the level '{}' has no unit {}", level.name, unit),
                      "number the units from 0, and name all of them or none"};
    const auto old = static_cast<std::size_t>(unit);
    if (old >= number.size()) number.resize(old + 1, -1);
    if (number[old] < 0) {
      number[old] = next++;
      if (!level.names.empty()) names.push_back(std::move(level.names.at(old)));
    }
    unit = number[old];
  }
  level.names = std::move(names);
}

// Replaces a list of units by their size, if all units are contiguous and equal.
void shorten(MachineLevel& level, std::int64_t slots) {
  if (level.size > 0) return;
  const auto end = std::ranges::find_if(level.units, [](std::int32_t unit) { return unit != 0; });
  const std::int64_t size = end - level.units.begin();
  for (std::int64_t s = size; s < slots; ++s)
    if (level.units[static_cast<std::size_t>(s)] != s / size) return;
  level.size = size;
  level.units = {};
}

// The sizes of the units of a level whose units are listed.
std::vector<std::int64_t> sizes_of(const MachineLevel& level) {
  std::vector<std::int64_t> sizes;
  for (const std::int32_t unit : level.units) {
    if (static_cast<std::size_t>(unit) >= sizes.size())
      sizes.resize(static_cast<std::size_t>(unit) + 1);
    ++sizes[static_cast<std::size_t>(unit)];
  }
  return sizes;
}

// Throws unless each unit of `inner` lies inside one unit of `outer`.
void require_inside(const Machine& machine, std::size_t outer, std::size_t inner) {
  const MachineLevel& o = machine.levels()[outer];
  const MachineLevel& i = machine.levels()[inner];
  const auto refuse = [&](std::int64_t unit, std::int64_t one, std::int64_t other) {
    throw SpecError{fmt::format("{} is in two units of the level '{}': {} and {}",
                                machine.unit_name(inner, unit), o.name,
                                machine.unit_name(outer, one), machine.unit_name(outer, other)),
                    "a machine must be a tree; correct the description, or leave out one level"};
  };
  if (o.size > 0 && i.size > 0) {  // the first border between units of `outer` shows it
    if (o.size % i.size != 0 && o.size < machine.slot_count()) refuse(o.size / i.size, 0, 1);
    return;
  }
  std::vector<std::int64_t> parent(static_cast<std::size_t>(machine.unit_count(inner)), -1);
  for (std::int64_t s = 0; s < machine.slot_count(); ++s) {
    const std::int64_t part = machine.unit(inner, s);
    std::int64_t& known = parent[static_cast<std::size_t>(part)];
    const std::int64_t unit = machine.unit(outer, s);
    if (known >= 0 && known != unit) refuse(part, known, unit);
    known = unit;
  }
}

}  // namespace

std::string_view to_string(LevelKind kind) {
  return detail::name_in({"network", "domain", "node", "socket"}, kind);
}

std::string plural(std::string_view level_name) {
  return level_name == "leaf" ? "leaves" : std::string{level_name} + "s";
}

Machine::Machine(std::int64_t slots, std::vector<MachineLevel> levels,
                 std::vector<SlotDevice> devices)
    : slots_{slots}, levels_{std::move(levels)}, devices_{std::move(devices)} {
  if (slots_ < 1) throw SpecError{"the machine has no slots", "give at least one node"};
  if (std::ranges::count(levels_, LevelKind::node, &MachineLevel::kind) != 1)
    throw SpecError{"a machine must have exactly one level of nodes", "add or remove a level"};
  for (MachineLevel& level : levels_) {
    if (level.size < 0 || (level.size == 0 && std::ssize(level.units) != slots_))
      throw SpecError{fmt::format("the level '{}' has {} units listed for {} slots", level.name,
                                  level.units.size(), slots_),
                      "list one unit for each slot"};
    if (level.size == 0) renumber(level);
    shorten(level, slots_);
    level.size = std::min(level.size, slots_);
    by_size_.emplace_back(level.size > 0 ? level.size : 1);
    if (level.size > 0) {
      unit_counts_.push_back((slots_ + level.size - 1) / level.size);
      largest_.push_back(level.size);
      smallest_.push_back(slots_ - (unit_counts_.back() - 1) * level.size);
    } else {
      const std::vector<std::int64_t> sizes = sizes_of(level);
      unit_counts_.push_back(std::ssize(sizes));
      largest_.push_back(*std::ranges::max_element(sizes));
      smallest_.push_back(*std::ranges::min_element(sizes));
    }
  }
  while (levels_[node_level_].kind != LevelKind::node) ++node_level_;
  for (std::size_t l = 1; l < levels_.size(); ++l) require_inside(*this, l - 1, l);
}

std::optional<std::size_t> Machine::find(LevelKind kind) const {
  for (std::size_t l = levels_.size(); l-- > 0;)
    if (levels_[l].kind == kind) return l;
  return std::nullopt;
}

std::size_t Machine::fast_level() const {
  for (std::size_t l = 0; l < levels_.size(); ++l)
    if (levels_[l].kind == LevelKind::domain) return l;
  return node_level_;
}

std::string Machine::unit_name(std::size_t level, std::int64_t unit) const {
  const MachineLevel& l = levels_[level];
  if (static_cast<std::size_t>(unit) < l.names.size() &&
      !l.names[static_cast<std::size_t>(unit)].empty())
    return l.names[static_cast<std::size_t>(unit)];
  return fmt::format("{}{}", l.name, unit);
}

std::string Machine::host(std::int64_t slot) const {
  return unit_name(node_level_, unit(node_level_, slot));
}

std::int64_t Machine::local_slot(std::int64_t slot) const {
  const MachineLevel& node = levels_[node_level_];
  if (node.size > 0) return slot - unit(node_level_, slot) * node.size;
  const auto begin = node.units.begin();
  return std::count(begin, begin + slot, node.units[static_cast<std::size_t>(slot)]);
}

SlotDevice Machine::device(std::int64_t slot) const {
  if (devices_.empty()) return {};
  return devices_[static_cast<std::size_t>(local_slot(slot)) % devices_.size()];
}

Machine Machine::first_slots(std::int64_t slots) const {
  if (slots > slots_)
    throw SpecError{fmt::format("the machine has {}, but the mesh needs {}",
                                detail::count_text(slots_, "slot"), slots),
                    "add nodes to the machine, or slots to its nodes (--ranks-per-node), or use a "
                    "smaller mesh"};
  if (slots == slots_) return *this;
  std::vector<MachineLevel> levels = levels_;
  for (MachineLevel& level : levels)
    if (level.size == 0) level.units.resize(static_cast<std::size_t>(slots));
  return Machine{slots, std::move(levels), devices_};
}

Machine Machine::with_speed(std::size_t level, std::optional<double> bandwidth,
                            std::optional<double> latency) const {
  for (const auto& value : {bandwidth, latency})
    if (value && !(*value > 0))
      throw UsageError{
          fmt::format("the bandwidth or latency of a {} is {}", levels_[level].name, *value),
          "give a positive number"};
  Machine result = *this;
  result.levels_[level].bandwidth = bandwidth;
  result.levels_[level].latency = latency;
  return result;
}

std::string Machine::describe() const {
  std::vector<std::string> parts;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const bool is_equal = smallest_[l] == largest_[l];
    parts.push_back(
        fmt::format("{} of {}{}",
                    fmt::format("{} {}", unit_counts_[l],
                                unit_counts_[l] == 1 ? levels_[l].name : plural(levels_[l].name)),
                    is_equal ? "" : fmt::format("{} to ", smallest_[l]), largest_[l]));
  }
  return fmt::format("{}: {}", detail::count_text(slots_, "slot"), fmt::join(parts, ", "));
}

}  // namespace rankmesh

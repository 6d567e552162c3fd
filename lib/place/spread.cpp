// SPDX-License-Identifier: BSD-3-Clause
#include "place/spread.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

constexpr std::size_t most_ranges = 16;

// Groups are added in the order of their numbers.
void add_group(LevelSpread& spread, std::int64_t group, std::int64_t units) {
  spread.most_units = std::max(spread.most_units, units);
  if (units == 1) {
    ++spread.inside;
    return;
  }
  ++spread.split;
  auto& ranges = spread.split_groups;
  if (!ranges.empty() && ranges.back().second == group - 1)
    ranges.back().second = group;
  else if (ranges.size() < most_ranges)
    ranges.emplace_back(group, group);
}

// Counts the units that an ascending sequence of positions touches. The positions of one mode are
// counted together: if the stride is less than the size of a unit, no unit is skipped; otherwise
// each step reaches a new unit.
class UnitCounter {
 public:
  UnitCounter(const std::vector<Mode>& modes, std::int64_t size)
      : modes_{modes}, size_{size}, by_size_{size} {}

  std::int64_t count(std::int64_t start) {
    units_ = 0;
    last_ = -1;
    visit(0, start);
    return units_;
  }

 private:
  void visit(std::size_t m, std::int64_t position) {
    if (m + 1 < modes_.size()) {
      for (std::int64_t i = 0; i < modes_[m].size; ++i)
        visit(m + 1, position + i * modes_[m].stride);
      return;
    }
    const Mode mode = modes_.empty() ? Mode{} : modes_.back();
    const std::int64_t first = by_size_.quotient(position);
    const std::int64_t last = by_size_.quotient(position + (mode.size - 1) * mode.stride);
    units_ += mode.stride < size_ ? last - first + 1 : mode.size;
    if (first == last_) --units_;
    last_ = last;
  }

  const std::vector<Mode>& modes_;
  std::int64_t size_;
  Divider by_size_;
  std::int64_t units_ = 0;
  std::int64_t last_ = -1;
};

// All groups are translates of one set, so a group touches as many units as any other group whose
// lowest rank has the same remainder.
bool spread_translates(const GroupFamily& family, const Machine& machine,
                       std::vector<LevelSpread>& result) {
  constexpr std::int64_t largest_cache = std::int64_t{1} << 22;
  if (family.first_ranks() == nullptr) return false;
  for (const MachineLevel& level : machine.levels())
    if (level.size == 0 || level.size > largest_cache) return false;
  const RankSet group = family.group(0);
  if (group.table()) return false;
  const std::vector<Mode> modes = group.ascending_modes();
  const std::int64_t to_lowest = group.lowest().value() - group.front().value();
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    const std::int64_t size = machine.levels()[l].size;
    const Divider by_size{size};
    UnitCounter counter{modes, size};
    std::vector<std::int32_t> known(static_cast<std::size_t>(size));
    std::int64_t g = 0;
    family.first_ranks()->for_each([&](Rank first) {
      const std::int64_t lowest = first.value() + to_lowest;
      const std::int64_t remainder = lowest - by_size.quotient(lowest) * size;
      std::int32_t& units = known[static_cast<std::size_t>(remainder)];
      if (units == 0) units = static_cast<std::int32_t>(counter.count(remainder));
      add_group(result[l], g++, units);
    });
  }
  return true;
}

std::int64_t slot_of(Rank rank, std::span<const std::int64_t> slots) {
  return slots.empty() ? rank.value() : slots[rank.to_size()];
}

void require_slots(const GroupFamily& family, const Machine& machine,
                   std::span<const std::int64_t> slots) {
  const std::int64_t ranks = slots.empty() ? machine.slot_count() : std::ssize(slots);
  if (family.highest().value() >= ranks)
    throw UsageError{
        fmt::format("'{}' has rank {}, but the machine has {}", family.name(),
                    family.highest().value(), detail::count_text(machine.slot_count(), "slot")),
        "use a machine with a slot for each rank"};
}

}  // namespace

std::string split_numbers(const LevelSpread& spread) {
  std::string text;
  std::int64_t listed = 0;
  for (const auto& [first, last] : spread.split_groups) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
    listed += last - first + 1;
  }
  return listed < spread.split ? text + ",..." : text;
}

std::vector<LevelSpread> spread_of(const GroupFamily& family, const Machine& machine,
                                   std::span<const std::int64_t> slots) {
  require_slots(family, machine, slots);
  std::vector<LevelSpread> result(machine.levels().size());
  if (slots.empty() && spread_translates(family, machine, result)) return result;
  std::vector<std::vector<std::int64_t>> seen;  // the last group in each unit
  for (std::size_t l = 0; l < result.size(); ++l)
    seen.emplace_back(static_cast<std::size_t>(machine.unit_count(l)), -1);
  std::vector<std::int64_t> units(result.size());
  std::int64_t g = 0;
  const auto add_rank = [&](Rank rank) {
    const std::int64_t slot = slot_of(rank, slots);
    for (std::size_t l = 0; l < result.size(); ++l) {
      std::int64_t& last = seen[l][static_cast<std::size_t>(machine.unit(l, slot))];
      if (last != g) ++units[l];
      last = g;
    }
  };
  const auto end_group = [&] {
    for (std::size_t l = 0; l < result.size(); ++l) add_group(result[l], g, units[l]);
    std::ranges::fill(units, 0);
    ++g;
  };
  if (const RankSet* all = family.in_sequence()) {  // no set is created for each group
    std::int64_t left = family.group_size();
    all->for_each([&](Rank rank) {
      add_rank(rank);
      if (--left > 0) return;
      end_group();
      left = family.group_size();
    });
    return result;
  }
  while (g < family.group_count()) {
    family.group(g).for_each(add_rank);
    end_group();
  }
  return result;
}

std::int64_t units_of(const RankSet& group, const Machine& machine, std::size_t level,
                      std::span<const std::int64_t> slots) {
  std::vector<std::int64_t> units;
  group.for_each([&](Rank rank) { units.push_back(machine.unit(level, slot_of(rank, slots))); });
  std::ranges::sort(units);
  return std::ranges::unique(units).begin() - units.begin();
}

}  // namespace rankmesh

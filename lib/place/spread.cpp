// SPDX-License-Identifier: BSD-3-Clause
#include "place/spread.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/distinct_groups.hpp"
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

std::vector<LevelSpread> spread_of(const GroupFamily& family, const Machine& machine,
                                   std::span<const std::int64_t> slots) {
  require_slots(family, machine, slots);
  std::vector<LevelSpread> result(machine.levels().size());
  for (std::size_t l = 0; l < result.size(); ++l) {
    std::vector<std::int64_t> units(static_cast<std::size_t>(family.group_count()));
    const auto add = [&](std::int64_t g, std::int64_t twin) {
      std::int64_t& of_twin = units[static_cast<std::size_t>(twin)];
      if (of_twin == 0) of_twin = visits_of(family.group(twin), machine, l, slots).units;
      add_group(result[l], g, of_twin);
    };
    if (slots.empty()) {
      detail::visit_twins(family, machine, l, add);
    } else {
      for (std::int64_t g = 0; g < family.group_count(); ++g) add(g, g);
    }
  }
  return result;
}

std::string numbers_text(const LevelSpread& spread) {
  std::vector<std::string> ranges;
  std::int64_t listed = 0;
  for (const auto& [first, last] : spread.split_groups) {
    ranges.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
    listed += last - first + 1;
  }
  if (listed < spread.split) ranges.emplace_back("...");
  return fmt::format("{}", fmt::join(ranges, ","));
}

UnitVisits visits_of(const RankSet& group, const Machine& machine, std::size_t level,
                     std::span<const std::int64_t> slots) {
  UnitVisits visits;
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;  // of consecutive ranks in a unit
  group.for_each([&](Rank rank) {
    const std::int64_t unit = machine.unit(level, slot_of(rank, slots));
    if (counts.empty() || unit != counts.back().first) counts.emplace_back(unit, 0);
    ++counts.back().second;
  });
  visits.entries = std::ssize(counts);
  std::ranges::sort(counts);
  for (auto at = counts.begin(); at != counts.end(); ++visits.units) {
    const std::int64_t unit = at->first;
    std::int64_t ranks = 0;
    for (; at != counts.end() && at->first == unit; ++at) ranks += at->second;
    visits.least = std::min(visits.least, ranks);
    visits.most = std::max(visits.most, ranks);
  }
  return visits;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/traffic.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/distinct_groups.hpp"
#include "detail/objective.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/place/role.hpp"

namespace rankmesh {
namespace {

__extension__ using WideBytes = __int128;

std::int64_t usual_bytes(FamilyRole role) {
  switch (role) {
    case FamilyRole::tensor:
      return 200;
    case FamilyRole::expert:
      return 100;
    case FamilyRole::sharded:
      return 30;
    case FamilyRole::context:
    case FamilyRole::data:
      return 20;
    case FamilyRole::pipeline:
      return 1;
    case FamilyRole::other:
      return 0;
  }
  return 0;
}

}  // namespace

std::string_view to_string(Pattern pattern) {
  switch (pattern) {
    case Pattern::ring:
      return "ring";
    case Pattern::tree:
      return "tree";
    case Pattern::all_to_all:
      return "all-to-all";
    case Pattern::chain:
      return "chain";
  }
  return "?";
}

Pattern usual_pattern(std::string_view name) {
  const FamilyRole role = role_of(name);
  if (role == FamilyRole::expert) return Pattern::all_to_all;
  return role == FamilyRole::pipeline ? Pattern::chain : Pattern::ring;
}

std::vector<FamilyTraffic> usual_traffic(const MeshPlan& plan) {
  std::vector<FamilyTraffic> traffic;
  for (const GroupFamily& family : plan.families())
    if (const std::int64_t bytes = usual_bytes(role_of(family.name()));
        bytes > 0 && family.group_size() > 1)
      traffic.push_back({family.name(), bytes, usual_pattern(family.name())});
  if (!traffic.empty()) return traffic;
  for (const GroupFamily& family : plan.families())
    if (family.dimensions().size() == 1 && family.group_size() > 1 && family.is_strided())
      traffic.push_back({family.name(), 1, Pattern::ring});
  return traffic;
}

namespace detail {

std::int64_t bytes_between(Pattern pattern, std::int64_t bytes, std::int64_t size,
                           std::int64_t units, std::int64_t sum_of_squares,
                           std::int64_t crossing_neighbours) {
  if (units < 2) return 0;
  switch (pattern) {
    case Pattern::ring:
      return units * bytes;
    case Pattern::tree:
      return (units - 1) * static_cast<std::int64_t>(WideBytes{bytes} * size / (size - 1));
    case Pattern::all_to_all:
      return static_cast<std::int64_t>(WideBytes{size * size - sum_of_squares} * bytes /
                                       (size - 1));
    case Pattern::chain:
      return 2 * crossing_neighbours * bytes;
  }
  return 0;
}

namespace {

void require_disjoint(const GroupFamily& family, std::int64_t ranks) {
  if (family.coverage(ranks) == Coverage::overlapping)
    throw UsageError{
        fmt::format("the groups of '{}' overlap, so their traffic is not known", family.name()),
        "give the traffic of families whose groups do not overlap"};
}

void require_traffic(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic) {
  const std::int64_t ranks = plan.world_size();
  if (machine.slot_count() < ranks)
    throw UsageError{fmt::format("the mesh has {}, but the machine has {} slots",
                                 count_text(ranks, "rank"), machine.slot_count()),
                     "use a machine with a slot for each rank"};
  std::int64_t left = (std::int64_t{1} << 61) / ranks;
  for (const FamilyTraffic& t : traffic) {
    // No pattern lets more than two times the bytes of each rank leave its units.
    if (t.bytes < 0 || t.bytes > left)
      throw UsageError{fmt::format("the bytes of '{}' are negative, or too many to add up", t.name),
                       "give the bytes that one rank sends in one step"};
    left -= t.bytes;
    require_disjoint(plan.groups(t.name), ranks);
  }
}

}  // namespace

Objective::Objective(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic,
                     std::span<const std::string> kept_in_nodes)
    : machine_{machine}, ranks_{plan.world_size()} {
  require_traffic(plan, machine, traffic);
  for (const FamilyTraffic& t : traffic) add_family(plan.groups(t.name), t, false);
  for (const std::string& name : kept_in_nodes)
    add_family(plan.groups(name), {name, 0, Pattern::ring}, true);
  for (std::size_t l = 0; l < levels(); ++l) {
    count_.emplace_back(static_cast<std::size_t>(machine.unit_count(l)));
    stamp_.emplace_back(static_cast<std::size_t>(machine.unit_count(l)), -1);
  }
}

void Objective::add_family(const GroupFamily& family, const FamilyTraffic& traffic, bool is_kept) {
  require_disjoint(family, ranks_);
  Family f{traffic.pattern, traffic.bytes, is_kept, {}, {0}, {}};
  f.group_of.resize(static_cast<std::size_t>(ranks_), -1);
  for (std::int64_t g = 0; g < family.group_count(); ++g) {
    family.group(g).for_each([&](Rank rank) {
      f.group_of[rank.to_size()] = static_cast<std::int32_t>(g);
      f.members.push_back(static_cast<std::int32_t>(rank.value()));
    });
    f.starts.push_back(static_cast<std::int64_t>(f.members.size()));
  }
  members_count_ += static_cast<std::int64_t>(f.members.size());
  families_.push_back(std::move(f));
}

void Objective::add_group(const Family& family, std::size_t group,
                          std::span<const std::int64_t> slots, LevelBytes& to) const {
  const std::int64_t begin = family.starts[group];
  const std::int64_t end = family.starts[group + 1];
  for (std::size_t l = 0; l < levels(); ++l) {
    if (family.is_kept && l != machine_.node_level()) continue;
    ++mark_;
    std::int64_t units = 0;
    std::int64_t squares = 0;
    std::int64_t crossings = 0;
    std::int64_t last = -1;
    for (std::int64_t m = begin; m < end; ++m) {
      const std::int32_t rank = family.members[static_cast<std::size_t>(m)];
      const std::int64_t slot = slots.empty() ? rank : slots[static_cast<std::size_t>(rank)];
      const std::int64_t unit = machine_.unit(l, slot);
      std::int64_t& stamp = stamp_[l][static_cast<std::size_t>(unit)];
      std::int64_t& count = count_[l][static_cast<std::size_t>(unit)];
      if (stamp != mark_) {
        stamp = mark_;
        count = 0;
        ++units;
      }
      squares += 2 * count + 1;  // (count + 1)^2 - count^2
      ++count;
      crossings += last >= 0 && last != unit ? 1 : 0;
      last = unit;
    }
    if (family.is_kept)
      to[0] += units - 1;
    else
      to[l + 1] +=
          bytes_between(family.pattern, family.bytes, end - begin, units, squares, crossings);
  }
}

LevelBytes Objective::evaluate(std::span<const std::int64_t> slots) const {
  LevelBytes bytes(levels() + 1);
  for (const Family& family : families_)
    for (std::size_t g = 0; g + 1 < family.starts.size(); ++g) add_group(family, g, slots, bytes);
  return bytes;
}

LevelBytes Objective::around(std::int64_t a, std::int64_t b,
                             std::span<const std::int64_t> slots) const {
  LevelBytes bytes(levels() + 1);
  for (const Family& family : families_) {
    const std::int32_t first = family.group_of[static_cast<std::size_t>(a)];
    const std::int32_t second = family.group_of[static_cast<std::size_t>(b)];
    if (first >= 0) add_group(family, static_cast<std::size_t>(first), slots, bytes);
    if (second >= 0 && second != first)
      add_group(family, static_cast<std::size_t>(second), slots, bytes);
  }
  return bytes;
}

std::int64_t Objective::visited_around(std::int64_t a, std::int64_t b) const {
  std::int64_t visited = 0;
  for (const Family& family : families_) {
    const std::int32_t first = family.group_of[static_cast<std::size_t>(a)];
    const std::int32_t second = family.group_of[static_cast<std::size_t>(b)];
    const auto size = [&](std::int32_t group) {
      const auto g = static_cast<std::size_t>(group);
      return group < 0 ? 0 : family.starts[g + 1] - family.starts[g];
    };
    visited += size(first) + (second != first ? size(second) : 0);
  }
  return visited * static_cast<std::int64_t>(levels());
}

LevelBytes Objective::bound() const {
  LevelBytes bytes(levels() + 1);
  for (const Family& family : families_)
    for (std::size_t g = 0; g + 1 < family.starts.size(); ++g)
      for (std::size_t l = 0; l < levels(); ++l) {
        const std::int64_t size = family.starts[g + 1] - family.starts[g];
        const std::int64_t largest = machine_.largest(l);
        const std::int64_t units = (size + largest - 1) / largest;
        const std::int64_t rest = size - (units - 1) * largest;
        if (family.is_kept && l != machine_.node_level()) continue;
        if (family.is_kept) bytes[0] += units - 1;
        bytes[l + 1] += bytes_between(family.pattern, family.bytes, size, units,
                                      (units - 1) * largest * largest + rest * rest, units - 1);
      }
  return bytes;
}

namespace {

// The bytes of one group in the order of the launcher. `counts` has a zero for each unit.
std::int64_t bytes_of_group(const RankSet& group, const FamilyTraffic& traffic,
                            const Machine& machine, std::size_t level,
                            std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> touched;
  std::int64_t crossings = 0;
  std::int64_t last = -1;
  group.for_each([&](Rank rank) {
    const std::int64_t unit = machine.unit(level, rank.value());
    if (counts[static_cast<std::size_t>(unit)]++ == 0) touched.push_back(unit);
    crossings += last >= 0 && last != unit ? 1 : 0;
    last = unit;
  });
  std::int64_t squares = 0;
  for (const std::int64_t unit : touched) {
    std::int64_t& count = counts[static_cast<std::size_t>(unit)];
    squares += count * count;
    count = 0;
  }
  return bytes_between(traffic.pattern, traffic.bytes, group.size(),
                       static_cast<std::int64_t>(touched.size()), squares, crossings);
}

}  // namespace
}  // namespace detail

std::vector<std::int64_t> bytes_per_level(const MeshPlan& plan, const Machine& machine,
                                          std::span<const FamilyTraffic> traffic,
                                          std::span<const std::int64_t> slots) {
  if (!slots.empty()) {
    const detail::LevelBytes bytes = detail::Objective{plan, machine, traffic}.evaluate(slots);
    return {bytes.begin() + 1, bytes.end()};
  }
  detail::require_traffic(plan, machine, traffic);
  std::vector<std::int64_t> bytes(machine.levels().size());
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(machine.unit_count(l)));
    for (const FamilyTraffic& t : traffic) {
      const GroupFamily& family = plan.groups(t.name);
      detail::visit_distinct_groups(family, machine, l, [&](std::int64_t g, std::int64_t alike) {
        bytes[l] += alike * detail::bytes_of_group(family.group(g), t, machine, l, counts);
      });
    }
  }
  return bytes;
}

std::vector<std::optional<double>> least_seconds_per_level(const Machine& machine,
                                                           std::span<const std::int64_t> bytes) {
  std::vector<std::optional<double>> seconds;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    const MachineLevel& level = machine.levels()[l];
    seconds.emplace_back();
    if (!level.bandwidth) continue;
    const double all = *level.bandwidth * static_cast<double>(machine.slot_count());
    seconds.back() =
        bytes[l] == 0 ? 0 : static_cast<double>(bytes[l]) / all + level.latency.value_or(0);
  }
  return seconds;
}

std::vector<std::int64_t> least_bytes_per_level(const MeshPlan& plan, const Machine& machine,
                                                std::span<const FamilyTraffic> traffic) {
  const detail::LevelBytes bytes = detail::Objective{plan, machine, traffic}.bound();
  return {bytes.begin() + 1, bytes.end()};
}

}  // namespace rankmesh

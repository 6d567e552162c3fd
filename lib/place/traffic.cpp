// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/traffic.hpp"

#include "detail/distinct_groups.hpp"
#include "detail/objective.hpp"
#include "rankmesh/place/role.hpp"

namespace rankmesh {
namespace {

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
  const std::int64_t bytes =
      detail::bytes_between(traffic.pattern, traffic.bytes, group.size(),
                            static_cast<std::int64_t>(touched.size()), squares, crossings);
  return detail::limited(bytes, level <= machine.node_level() ? traffic.most_between_nodes : 0,
                         group.size());
}

}  // namespace

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
        bytes[l] += alike * bytes_of_group(family.group(g), t, machine, l, counts);
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

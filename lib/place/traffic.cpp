// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/traffic.hpp"

#include "base/detail/text.hpp"
#include "detail/distinct_groups.hpp"
#include "detail/objective.hpp"
#include "rankmesh/layout/role.hpp"

namespace rankmesh {
namespace {

// By FamilyRole.
constexpr std::int64_t usual_bytes[] = {200, 100, 20, 20, 30, 1, 0};

}  // namespace

std::string_view to_string(Pattern pattern) {
  return detail::name_in({"ring", "tree", "all-to-all", "chain"}, pattern);
}

Pattern usual_pattern(std::string_view name) {
  const FamilyRole role = role_of(name);
  if (role == FamilyRole::expert) return Pattern::all_to_all;
  return role == FamilyRole::pipeline ? Pattern::chain : Pattern::ring;
}

std::vector<FamilyTraffic> usual_traffic(const MeshPlan& plan) {
  std::vector<FamilyTraffic> traffic;
  for (const GroupFamily& family : plan.families())
    if (const std::int64_t bytes = usual_bytes[static_cast<std::size_t>(role_of(family.name()))];
        bytes > 0 && family.group_size() > 1 &&
        family.coverage(plan.world_size()) != Coverage::overlapping)
      traffic.push_back({family.name(), bytes, usual_pattern(family.name())});
  if (!traffic.empty()) return traffic;
  for (const GroupFamily& family : plan.families())
    if (family.dimensions().size() == 1 && family.group_size() > 1 && family.is_strided())
      traffic.push_back({family.name(), 1, Pattern::ring});
  return traffic;
}

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
    detail::UnitCounts counts{machine.unit_count(l)};
    for (const FamilyTraffic& t : traffic) {
      const GroupFamily& family = plan.groups(t.name);
      const std::int64_t most = detail::limit_on(machine, l, t.most_between_nodes);
      detail::visit_distinct_groups(family, machine, l, [&](std::int64_t g, std::int64_t alike) {
        const RankSet group = family.group(g);
        group.for_each([&](Rank rank) { counts.add(machine.unit(l, rank.value())); });
        bytes[l] +=
            alike * detail::bytes_between(t.pattern, t.bytes, most, group.size(), counts.take());
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

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The rules for the groups of one family.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "detail/distinct_groups.hpp"
#include "detail/findings.hpp"
#include "place/spread.hpp"
#include "rankmesh/layout/role.hpp"

namespace rankmesh::detail {
namespace {

// "3 of 8 groups: 0-2"
std::string groups_text(const LevelSpread& spread, std::int64_t groups) {
  std::string ranges;
  for (const auto& [first, last] : spread.split_groups)
    ranges +=
        fmt::format("{}{}", ranges.empty() ? "" : ",",
                    first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
  return fmt::format("{} of {}: {}", spread.split, groups, ranges);
}

bool is_bound_to_domain(FamilyRole role) {
  return role == FamilyRole::tensor || role == FamilyRole::expert;
}

void check_domain(const GroupFamily& family, const Machine& machine,
                  const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t level = machine.fast_level();
  if (!is_bound_to_domain(role_of(family.name())) || spreads[level].split == 0) return;
  const std::string& unit = machine.levels()[level].name;
  const std::string groups = groups_text(spreads[level], family.group_count());
  const std::string why = fmt::format(
      "these groups communicate in every layer, and the network between {} is slower than the "
      "inside of a {}",
      plural(unit), unit);
  if (family.group_size() > machine.largest(level))
    add_finding(
        findings, "larger-than-domain",
        {.name = family.name(),
         .groups = groups,
         .what = fmt::format("the groups of '{}' have {} ranks, but a {} has {}", family.name(),
                             family.group_size(), unit, machine.largest(level)),
         .why = why,
         .fix = fmt::format("use {} = {} or less, or larger domains", family.name(),
                            machine.largest(level))});
  else
    add_finding(findings, "leaves-domain",
                {.name = family.name(),
                 .groups = groups,
                 .what = fmt::format("groups of '{}' are split over up to {} {}", family.name(),
                                     spreads[level].most_units, plural(unit)),
                 .why = why,
                 .fix = fmt::format("make '{}' vary faster in the mesh, or ask `meshinfo plan`",
                                    family.name())});
}

void check_fault_domain(const GroupFamily& family, const Machine& machine,
                        const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t node = machine.node_level();
  if (role_of(family.name()) != FamilyRole::data || family.group_size() < 2 ||
      machine.unit_count(node) < 2 || spreads[node].inside == 0)
    return;
  add_finding(
      findings, "shared-fault-domain",
      {.name = family.name(),
       .groups = fmt::format("{} of {}", spreads[node].inside, family.group_count()),
       .what = fmt::format("all replicas of {} of '{}' are on one node",
                           count_text(spreads[node].inside, "group"), family.name()),
       .why = "if this node fails, no copy of its parameters is left, and the run continues from a "
              "checkpoint",
       .fix = "spread the replicas over several nodes, or accept the risk and silence the rule"});
}

// In each group, an edge between neighbours that enters another unit is counted.
void check_pipeline(const GroupFamily& family, const Machine& machine,
                    const std::vector<LevelSpread>& spreads, Findings& findings) {
  if (role_of(family.name()) != FamilyRole::pipeline || family.group_size() < 3) return;
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    if (spreads[l].split == 0) continue;
    std::int64_t first = -1;
    std::int64_t worst = 0;
    visit_distinct_groups(family, machine, l, [&](std::int64_t g, std::int64_t) {
      std::int64_t last = -1;
      std::int64_t crossings = 0;
      std::vector<std::int64_t> units;
      family.group(g).for_each([&](Rank rank) {
        const std::int64_t unit = machine.unit(l, rank.value());
        if (last >= 0 && unit != last) ++crossings;
        last = unit;
        units.push_back(unit);
      });
      std::ranges::sort(units);
      const std::int64_t distinct = std::ranges::unique(units).begin() - units.begin();
      if (crossings < distinct) return;
      if (first < 0 || g < first) first = g;
      worst = std::max(worst, crossings - distinct + 1);
    });
    if (first < 0) continue;
    const std::string& unit = machine.levels()[l].name;
    add_finding(
        findings, "pipeline-detour",
        {.name = family.name(),
         .groups = fmt::format("the first is {}", first),
         .what = fmt::format("the stages of '{}' return to a {} that they have left, {} too often",
                             family.name(), unit, count_text(worst, "time")),
         .why =
             fmt::format("each return sends activations over the network between {}", plural(unit)),
         .fix = "put consecutive stages side by side, or ask `meshinfo plan`"});
    return;  // the outermost level says it
  }
}

void check_uneven(const GroupFamily& family, const Machine& machine,
                  const std::vector<LevelSpread>& spreads, Findings& findings) {
  const std::size_t node = machine.node_level();
  if (spreads[node].split == 0 || family.group_size() <= spreads[node].most_units) return;
  std::int64_t first = -1;
  std::pair<std::int64_t, std::int64_t> example;
  visit_distinct_groups(family, machine, node, [&](std::int64_t g, std::int64_t) {
    std::vector<std::int64_t> units;
    family.group(g).for_each([&](Rank rank) { units.push_back(machine.unit(node, rank.value())); });
    std::ranges::sort(units);
    std::int64_t least = INT64_MAX;
    std::int64_t most = 0;
    for (auto at = units.begin(); at != units.end();) {
      const auto end = std::upper_bound(at, units.end(), *at);
      least = std::min<std::int64_t>(least, end - at);
      most = std::max<std::int64_t>(most, end - at);
      at = end;
    }
    if (least == most || (first >= 0 && g > first)) return;
    first = g;
    example = {least, most};
  });
  if (first < 0) return;
  add_finding(
      findings, "nccl-uneven-nodes",
      {.name = family.name(),
       .groups = fmt::format("the first is {}", first),
       .what = fmt::format("a group of '{}' has {} ranks on one node and {} on another",
                           family.name(), example.first, example.second),
       .why = "NCCL 2.31.2 hangs with 7 and 8 ranks per node (NVIDIA/nccl issue 2385), and uneven "
              "nodes make its rings slower",
       .fix = "place the same number of ranks of a group on each node, or use another version of "
              "NCCL"});
}

}  // namespace

void check_family(const GroupFamily& family, const Machine& machine, Findings& findings) {
  const std::vector<LevelSpread> spreads = spread_of(family, machine);
  check_domain(family, machine, spreads, findings);
  check_fault_domain(family, machine, spreads, findings);
  check_pipeline(family, machine, spreads, findings);
  if (family.is_strided()) check_uneven(family, machine, spreads, findings);
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/connection_plan.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace rankmesh::detail {

std::string duplicate_name(std::string_view name, std::string_view key) {
  return fmt::format("{}[{}]", name, key);
}

const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan) {
  static const GroupOptions defaults;
  return group.families.empty() ? defaults : plan.options(group.families.front());
}

ConnectionPlan::ConnectionPlan(const MeshPlan& plan, Rank rank, const Placement& placement,
                               Deadline::Duration timeout) {
  for (std::size_t f = 0; f < plan.families().size(); ++f)
    if (plan.families()[f].coverage(plan.world_size()) != Coverage::overlapping)
      add_family(plan, f, rank, placement, timeout);
}

std::size_t ConnectionPlan::add_group(std::string name, const RankSet& ranks, std::size_t family,
                                      const Placement& placement, Deadline::Duration timeout) {
  GroupDescription group;
  group.identity = name;
  group.names = {name};
  group.name = std::move(name);
  group.families = {family};
  group.ranks = ranks;
  group.timeout = timeout;
  group.nodes = placement.nodes_of(ranks);
  group.has_own_cores = placement.has_own_cores(ranks).value_or(true);
  groups.push_back(std::move(group));
  return groups.size() - 1;
}

// Counts the groups that the plan creates, also those without this rank, so that all members know
// a group by the same number.
void ConnectionPlan::number(std::optional<std::size_t> group) {
  ++last_number_;
  if (group) groups[*group].number = last_number_;
}

void ConnectionPlan::add_family(const MeshPlan& plan, std::size_t f, Rank rank,
                                const Placement& placement, Deadline::Duration timeout) {
  const GroupFamily& family = plan.families()[f];
  const GroupOptions& options = plan.options(f);
  const auto place = family.find(rank);
  const RankSet ranks = place ? family.group(place->group) : RankSet{};
  // If an earlier family has an equal group, both share its connection.
  std::optional<std::size_t> group;
  if (place) {
    const auto same = std::ranges::find_if(groups, [&](const GroupDescription& g) {
      return g.ranks == ranks && g.duplicate_key.empty() && options_of(g, plan).can_share(options);
    });
    if (same != groups.end()) group = static_cast<std::size_t>(same - groups.begin());
  }
  if (group) {
    groups[*group].families.push_back(f);
    groups[*group].names.push_back(family.name());
  }

  if (plan.needs_creation(f)) {
    const bool is_served = group.has_value() || !place || ranks.size() == 1;
    if (!is_served) {
      group = add_group(family.name(), ranks, f, placement, timeout);
      groups[*group].leader = plan.leader(f, place->group);
      if (options.timeout) groups[*group].timeout = Deadline::Duration{*options.timeout};
    }
    number(is_served ? std::nullopt : group);
  }
  if (place) {
    if (!group)
      group = add_group(family.name(), ranks, f, placement, timeout);  // a group of one rank
    BatchPlace& batch_place = groups[*group].place;
    batch_place = plan.batch_place(groups[*group].families.front());
    for (const std::size_t served : groups[*group].families)
      batch_place = std::min(batch_place, plan.batch_place(served));
    coordinators.push_back({family.name(), *group});
  }
  add_duplicates(plan, f, place, group, placement);
}

// Adds the duplicates of a family. A duplicate of a group of one rank shares the connection of the
// group.
void ConnectionPlan::add_duplicates(const MeshPlan& plan, std::size_t f,
                                    const std::optional<GroupIndex>& place,
                                    std::optional<std::size_t> group, const Placement& placement) {
  const auto& keys = plan.options(f).duplicates;
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const std::string name = duplicate_name(plan.families()[f].name(), keys[k]);
    std::optional<std::size_t> duplicate = group;
    if (place && plan.has_communicators(f)) {
      const RankSet ranks = groups[*group].ranks;
      duplicate = add_group(name, ranks, f, placement, groups[*group].timeout);
      // Another member creates the unique ID, so that one rank does not create all of them.
      const std::int64_t first = plan.leader(f, place->group).value();
      groups[*duplicate].leader =
          RankInGroup{(first + static_cast<std::int64_t>(k) + 1) % ranks.size()};
      groups[*duplicate].place = plan.batch_place(f);
      groups[*duplicate].duplicate_key = keys[k];
    }
    if (place) coordinators.push_back({name, *duplicate});
    if (plan.has_communicators(f))
      number(place && groups[*duplicate].ranks.size() > 1 ? duplicate : std::nullopt);
  }
}

}  // namespace rankmesh::detail

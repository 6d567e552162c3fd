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
  group.name = std::move(name);
  group.families = {family};
  group.ranks = ranks;
  group.timeout = timeout;
  group.nodes = placement.nodes_of(ranks);
  groups.push_back(std::move(group));
  return groups.size() - 1;
}

void ConnectionPlan::add_family(const MeshPlan& plan, std::size_t f, Rank rank,
                                const Placement& placement, Deadline::Duration timeout) {
  const GroupFamily& family = plan.families()[f];
  const GroupOptions& options = plan.options(f);
  const auto place = family.find(rank);
  const RankSet ranks = place ? family.group(place->group) : RankSet{};
  const bool has_peers = place && ranks.size() > 1;
  const auto leader = [&](std::size_t number) {
    return RankInGroup{(plan.leader(f, place->group).value() + static_cast<std::int64_t>(number)) %
                       ranks.size()};
  };
  const auto add_split = [&](std::optional<std::size_t> group) {
    splits.push_back(group ? Split{static_cast<int>(place->group),
                                   static_cast<int>(place->rank_in_group.value()), group}
                           : Split{});
  };

  // If an earlier family has an equal group, both share its connection.
  std::optional<std::size_t> group;
  if (place) {
    const auto same = std::ranges::find_if(groups, [&](const GroupDescription& g) {
      return g.ranks == ranks && g.duplicate_key.empty() && options_of(g, plan).can_share(options);
    });
    if (same != groups.end()) group = static_cast<std::size_t>(same - groups.begin());
  }
  if (group) groups[*group].families.push_back(f);

  if (plan.needs_creation(f)) {
    const bool is_served = group.has_value() || !has_peers;
    if (!is_served) {
      group = add_group(family.name(), ranks, f, placement, timeout);
      groups[*group].leader = leader(0);
      if (options.timeout) groups[*group].timeout = Deadline::Duration{*options.timeout};
    }
    add_split(is_served ? std::nullopt : group);
  }
  if (place) {
    if (!group)
      group = add_group(family.name(), ranks, f, placement, timeout);  // a group of one rank
    const auto& served = groups[*group].families;
    groups[*group].place = plan.batch_place(served.front());
    for (const std::size_t g : served)
      groups[*group].place = std::min(groups[*group].place, plan.batch_place(g));
    coordinators.push_back({family.name(), *group});
  }

  for (std::size_t k = 0; k < options.duplicates.size(); ++k) {
    const std::string name = duplicate_name(family.name(), options.duplicates[k]);
    if (!plan.has_communicators(f)) {  // groups of one rank share their connection
      if (place) coordinators.push_back({name, *group});
      continue;
    }
    std::optional<std::size_t> duplicate;
    if (place) {
      duplicate = add_group(name, ranks, f, placement, groups[*group].timeout);
      groups[*duplicate].leader = leader(k + 1);
      groups[*duplicate].place = plan.batch_place(f);
      groups[*duplicate].duplicate_key = options.duplicates[k];
      coordinators.push_back({name, *duplicate});
    }
    add_split(has_peers ? duplicate : std::nullopt);
  }
}

}  // namespace rankmesh::detail

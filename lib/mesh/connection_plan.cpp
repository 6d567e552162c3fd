// SPDX-License-Identifier: BSD-3-Clause
#include "detail/connection_plan.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "layout/detail/shared_groups.hpp"

namespace rankmesh::detail {
namespace {

// Describes a group of one or more families. It has the options of the first one.
GroupDescription describe_use(CommunicatorUse use, const MeshPlan& plan,
                              const ControlPlane& control) {
  const std::size_t first = use.families.front();
  const GroupFamily& family = plan.families()[first];
  const GroupOptions& options = plan.options(first);
  const bool is_duplicate = !use.duplicate_key.empty();
  GroupDescription group = describe_group(
      is_duplicate ? duplicate_name(family.name(), use.duplicate_key) : family.name(),
      std::move(use.ranks), control);
  group.place = plan.batch_place(first);
  for (std::size_t f = 1; f < use.families.size(); ++f) {
    group.names.push_back(plan.families()[use.families[f]].name());
    group.place = std::min(group.place, plan.batch_place(use.families[f]));
  }
  if (group.ranks.size() > 1) {
    if (options.timeout) group.timeout = Deadline::Duration{*options.timeout};
    group.leader = plan.leader(first, family.find(control.rank())->group);
    // Another member creates the unique ID of a duplicate, so that one rank does not create all.
    if (is_duplicate) {
      const auto key = std::ranges::find(options.duplicates, use.duplicate_key);
      group.leader = RankInGroup{(group.leader.value() + (key - options.duplicates.begin()) + 1) %
                                 group.ranks.size()};
    }
  }
  group.families = std::move(use.families);
  group.duplicate_key = std::move(use.duplicate_key);
  return group;
}

// Numbers the groups that the plan creates, also those without this rank, so that all members know
// a group by the same number.
void number_groups(const MeshPlan& plan, std::vector<GroupDescription>& groups) {
  std::int64_t number = 0;
  const auto count = [&](std::size_t family, const std::string& key) {
    ++number;
    for (GroupDescription& group : groups)
      if (group.ranks.size() > 1 && group.families.front() == family && group.duplicate_key == key)
        group.number = number;
  };
  for (std::size_t f = 0; f < plan.families().size(); ++f) {
    if (plan.needs_creation(f)) count(f, {});
    if (!plan.has_communicators(f)) continue;
    for (const std::string& key : plan.options(f).duplicates) count(f, key);
  }
}

}  // namespace

ConnectionPlan plan_connections(const MeshPlan& plan, const ControlPlane& control) {
  ConnectionPlan result;
  for (CommunicatorUse& use : shared_groups(plan, control.rank()))
    result.groups.push_back(describe_use(std::move(use), plan, control));
  number_groups(plan, result.groups);
  for (std::size_t g = 0; g < result.groups.size(); ++g) {
    const GroupDescription& group = result.groups[g];
    for (const std::string& name : group.names) result.coordinators.push_back({name, g});
    if (group.ranks.size() > 1) continue;
    for (const std::size_t f : group.families)  // duplicates of a group of one rank are the group
      for (const std::string& key : plan.options(f).duplicates)
        result.coordinators.push_back({duplicate_name(plan.families()[f].name(), key), g});
  }
  return result;
}

GroupDescription describe_group(std::string name, RankSet ranks, const ControlPlane& control) {
  GroupDescription group;
  group.identity = name;
  group.names = {name};
  group.name = std::move(name);
  group.nodes = control.placement.nodes_of(ranks);
  group.has_own_cores = control.placement.has_own_cores(ranks).value_or(true);
  group.ranks = std::move(ranks);
  group.timeout = control.timeout;
  return group;
}

std::string duplicate_name(std::string_view name, std::string_view key) {
  return fmt::format("{}[{}]", name, key);
}

const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan) {
  static const auto& defaults = *new GroupOptions;  // as in default_routes.cpp
  return group.families.empty() ? defaults : plan.options(group.families.front());
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/connection_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace rankmesh::detail {

std::string duplicate_name(std::string_view name, std::string_view key) {
  return fmt::format("{}[{}]", name, key);
}

const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan) {
  static const GroupOptions defaults;
  return group.families.empty() ? defaults : plan.options(group.families.front());
}

namespace {

class ConnectionPlanner {
 public:
  ConnectionPlanner(const MeshPlan& plan, const ControlPlane& control)
      : plan_{plan}, control_{control} {
    for (std::size_t f = 0; f < plan.families().size(); ++f)
      if (plan.families()[f].coverage(plan.world_size()) != Coverage::overlapping) add_family(f);
  }

  ConnectionPlan take() { return {std::move(groups_), std::move(coordinators_)}; }

 private:
  std::size_t add_group(std::string name, const RankSet& ranks, std::size_t family,
                        Deadline::Duration timeout) {
    GroupDescription group;
    group.identity = name;
    group.names = {name};
    group.name = std::move(name);
    group.families = {family};
    group.ranks = ranks;
    group.timeout = timeout;
    group.nodes = control_.placement.nodes_of(ranks);
    group.has_own_cores = control_.placement.has_own_cores(ranks).value_or(true);
    groups_.push_back(std::move(group));
    return groups_.size() - 1;
  }

  // Counts the groups that the plan creates, also those without this rank, so that all members know
  // a group by the same number.
  void number(std::optional<std::size_t> group) {
    ++last_number_;
    if (group) groups_[*group].number = last_number_;
  }

  // Returns a group of an earlier family that has the same ranks and can be shared.
  [[nodiscard]] std::optional<std::size_t> find_same(const RankSet& ranks,
                                                     const GroupOptions& options) const {
    const auto same = std::ranges::find_if(groups_, [&](const GroupDescription& g) {
      return g.ranks == ranks && g.duplicate_key.empty() && options_of(g, plan_).can_share(options);
    });
    if (same == groups_.end()) return std::nullopt;
    return static_cast<std::size_t>(same - groups_.begin());
  }

  void add_family(std::size_t f) {
    const GroupFamily& family = plan_.families()[f];
    const GroupOptions& options = plan_.options(f);
    const auto place = family.find(control_.rank());
    const RankSet ranks = place ? family.group(place->group) : RankSet{};
    std::optional<std::size_t> group = place ? find_same(ranks, options) : std::nullopt;
    if (group) {
      groups_[*group].families.push_back(f);
      groups_[*group].names.push_back(family.name());
    }
    if (plan_.needs_creation(f)) {
      const bool is_served = group.has_value() || !place || ranks.size() == 1;
      if (!is_served) {
        group = add_group(family.name(), ranks, f, control_.timeout);
        groups_[*group].leader = plan_.leader(f, place->group);
        if (options.timeout) groups_[*group].timeout = Deadline::Duration{*options.timeout};
      }
      number(is_served ? std::nullopt : group);
    }
    if (place) {
      if (!group)
        group = add_group(family.name(), ranks, f, control_.timeout);  // a group of one rank
      BatchPlace& batch_place = groups_[*group].place;
      batch_place = plan_.batch_place(groups_[*group].families.front());
      for (const std::size_t served : groups_[*group].families)
        batch_place = std::min(batch_place, plan_.batch_place(served));
      coordinators_.push_back({family.name(), *group});
    }
    add_duplicates(f, place, group);
  }

  // Adds the duplicates of a family. A duplicate of a group of one rank shares the connection of
  // the group.
  void add_duplicates(std::size_t f, const std::optional<GroupIndex>& place,
                      std::optional<std::size_t> group) {
    const auto& keys = plan_.options(f).duplicates;
    for (std::size_t k = 0; k < keys.size(); ++k) {
      const std::string name = duplicate_name(plan_.families()[f].name(), keys[k]);
      std::optional<std::size_t> duplicate = group;
      if (place && plan_.has_communicators(f)) {
        const RankSet ranks = groups_[*group].ranks;
        duplicate = add_group(name, ranks, f, groups_[*group].timeout);
        // Another member creates the unique ID, so that one rank does not create all of them.
        const std::int64_t first = plan_.leader(f, place->group).value();
        groups_[*duplicate].leader =
            RankInGroup{(first + static_cast<std::int64_t>(k) + 1) % ranks.size()};
        groups_[*duplicate].place = plan_.batch_place(f);
        groups_[*duplicate].duplicate_key = keys[k];
      }
      if (place) coordinators_.push_back({name, *duplicate});
      if (plan_.has_communicators(f))
        number(place && groups_[*duplicate].ranks.size() > 1 ? duplicate : std::nullopt);
    }
  }

  const MeshPlan& plan_;
  const ControlPlane& control_;
  std::vector<GroupDescription> groups_;
  std::vector<ConnectionPlan::Coordinator> coordinators_;
  std::int64_t last_number_ = 0;  // the highest number of a group; the same on all ranks
};

}  // namespace

ConnectionPlan plan_connections(const MeshPlan& plan, const ControlPlane& control) {
  return ConnectionPlanner{plan, control}.take();
}

}  // namespace rankmesh::detail

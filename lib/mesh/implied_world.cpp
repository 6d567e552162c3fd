// SPDX-License-Identifier: BSD-3-Clause
// The groups that exist without being written: all ranks, and all ranks of a grid.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "detail/state.hpp"
#include "rankmesh/group/detail/group_access.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

// Returns the ranks for which a name stands that no family has, or nothing if it stands for none.
std::optional<RankSet> Mesh::ranks_of_world(std::string_view name) const {
  constexpr std::string_view world = "world";
  const MeshPlan& plan = this->plan();
  if (std::ranges::find(plan.families(), name, &GroupFamily::name) != plan.families().end())
    return std::nullopt;
  if (name == world) return RankSet::range(Rank{0}, plan.world_size());
  if (!name.ends_with(world)) return std::nullopt;
  const std::string_view prefix = name.substr(0, name.size() - world.size());  // such as `encoder.`
  if (!prefix.ends_with('.')) return std::nullopt;
  for (const Layout& view : plan.views())
    if (!view.dimensions().empty() && view.dimensions().front().name.starts_with(prefix))
      return view.ranks();
  return std::nullopt;
}

bool Mesh::has(std::string_view name) const {
  if (state().named.contains(name)) return true;
  const std::optional<RankSet> ranks = ranks_of_world(name);
  return ranks && ranks->contains(rank());
}

GroupCoordinator* Mesh::implied_world(std::string_view name) {
  const std::optional<RankSet> ranks = ranks_of_world(name);
  if (!ranks) return nullptr;
  if (!ranks->contains(rank()))
    throw NotMember{fmt::format("rank {} ({}) is in no group of '{}'", rank().value(),
                                plan().describe(rank()), name),
                    fmt::format("its first group is {}", ranks->to_string(60))};
  detail::MeshState& state = this->state();
  const auto known = state.worlds.find(name);
  const auto is_open = [&] {
    return !detail::GroupAccess::connection(*known->second).is_closed() ||
           state.runtime->is_closed;  // operations of a closed mesh throw the right error
  };
  if (known != state.worlds.end() && is_open()) return known->second.get();
  if (state.runtime->is_closed) (void)open_state("mesh[\"world\"]");  // which throws

  std::shared_ptr<GroupCoordinator> group;
  const auto same = std::ranges::find_if(state.connections, [&](const auto& connection) {
    return !connection->group.families.empty() && connection->group.ranks == *ranks;
  });
  if (same != state.connections.end()) {
    group = detail::GroupAccess::make(std::string{name}, *same, state.runtime);
  } else {
    std::vector<Rank> members;
    for (const Rank member : *ranks) members.push_back(member);
    group = new_group(std::span{members}, std::string{name});
  }
  std::shared_ptr<GroupCoordinator>& kept = state.worlds[std::string{name}];
  if (kept != nullptr) state.closed_worlds.push_back(std::move(kept));
  return (kept = std::move(group)).get();
}

}  // namespace rankmesh

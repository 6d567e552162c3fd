// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/placement.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace rankmesh {

Placement::Placement(const std::vector<std::int32_t>& node_keys,
                     const std::vector<std::int32_t>& cores)
    : knows_cores_{!cores.empty()} {
  std::unordered_map<std::int32_t, std::int32_t> number;  // key -> node
  for (std::size_t r = 0; r < node_keys.size(); ++r) {
    const auto [entry, is_new] = number.try_emplace(node_keys[r], node_count());
    if (is_new) nodes_.push_back({.ranks = 0, .cores = knows_cores_ ? cores.at(r) : 0});
    node_.push_back(entry->second);
    local_rank_.push_back(nodes_[static_cast<std::size_t>(entry->second)].ranks++);
  }
}

std::int32_t Placement::nodes_of(const RankSet& group) const {
  std::unordered_set<std::int32_t> nodes;
  for (const Rank rank : group) nodes.insert(node(rank));
  return static_cast<std::int32_t>(nodes.size());
}

std::optional<std::int32_t> Placement::cores(std::int32_t node) const {
  if (!knows_cores_) return std::nullopt;
  return nodes_.at(static_cast<std::size_t>(node)).cores;
}

std::optional<bool> Placement::has_own_cores(const RankSet& group) const {
  if (!knows_cores_) return std::nullopt;
  return std::ranges::all_of(group, [&](Rank rank) {
    const NodeSize& here = nodes_[static_cast<std::size_t>(node(rank))];
    return here.ranks <= here.cores;
  });
}

}  // namespace rankmesh

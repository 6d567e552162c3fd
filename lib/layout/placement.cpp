// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/layout/placement.hpp"

#include <unordered_map>
#include <unordered_set>

namespace rankmesh {

Placement::Placement(const std::vector<std::int32_t>& node_keys) {
  std::unordered_map<std::int32_t, std::int32_t> number;  // key -> node
  std::vector<std::int32_t> ranks_on;
  for (const std::int32_t key : node_keys) {
    const auto [entry, is_new] = number.try_emplace(key, node_count_);
    if (is_new) {
      ++node_count_;
      ranks_on.push_back(0);
    }
    node_.push_back(entry->second);
    local_rank_.push_back(ranks_on[static_cast<std::size_t>(entry->second)]++);
  }
}

std::int32_t Placement::nodes_of(const RankSet& group) const {
  std::unordered_set<std::int32_t> nodes;
  for (const Rank rank : group) nodes.insert(node(rank));
  return static_cast<std::int32_t>(nodes.size());
}

}  // namespace rankmesh

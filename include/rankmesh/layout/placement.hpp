// SPDX-License-Identifier: BSD-3-Clause
// The node of each rank.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// The node of each rank. Nodes are numbered in the order of their lowest ranks. A placement takes
/// 8 bytes of memory per rank and is immutable.
class RANKMESH_API Placement {
 public:
  /// @param node_keys  one value per rank. Ranks with the same value are on the same node.
  explicit Placement(const std::vector<std::int32_t>& node_keys);

  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t world_size() const { return static_cast<std::int64_t>(node_.size()); }
  /// Returns the number of nodes.
  [[nodiscard]] std::int32_t node_count() const { return node_count_; }
  /// Returns the node of a rank.
  [[nodiscard]] std::int32_t node(Rank rank) const {
    return node_.at(static_cast<std::size_t>(rank.value()));
  }
  /// Returns the local rank of a rank. The ranks of a node are numbered from 0 in ascending order.
  [[nodiscard]] std::int32_t local_rank(Rank rank) const {
    return local_rank_.at(static_cast<std::size_t>(rank.value()));
  }
  /// Returns the number of nodes that host ranks of the group. Takes O(size of the group) time.
  [[nodiscard]] std::int32_t nodes_of(const RankSet& group) const;

 private:
  std::vector<std::int32_t> node_;
  std::vector<std::int32_t> local_rank_;
  std::int32_t node_count_ = 0;
};

}  // namespace rankmesh

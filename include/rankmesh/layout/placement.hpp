// SPDX-License-Identifier: BSD-3-Clause
// The node of each rank.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// The node of each rank, and whether the ranks of a node share its cores. Nodes are numbered in
/// the order of their lowest ranks. A placement takes 8 bytes of memory per rank and is immutable.
class RANKMESH_API Placement {
 public:
  /// @param node_keys  one value per rank. Ranks with the same value are on the same node.
  /// @param cores  one value per rank: the number of cores on which ranks of its node may run, the
  /// same for all ranks of a node. Empty if the cores are not known.
  explicit Placement(const std::vector<std::int32_t>& node_keys,
                     const std::vector<std::int32_t>& cores = {});

  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t world_size() const { return static_cast<std::int64_t>(node_.size()); }
  /// Returns the number of nodes.
  [[nodiscard]] std::int32_t node_count() const { return static_cast<std::int32_t>(nodes_.size()); }
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
  /// Returns the number of cores on which ranks of a node may run; empty if it is not known.
  [[nodiscard]] std::optional<std::int32_t> cores(std::int32_t node) const;
  /// Returns whether each node that hosts members of the group has at least as many cores as ranks
  /// of the world. Empty if the cores are not known. Takes O(size of the group) time.
  [[nodiscard]] std::optional<bool> has_own_cores(const RankSet& group) const;

 private:
  struct NodeSize {
    std::int32_t ranks = 0;
    std::int32_t cores = 0;
  };
  std::vector<std::int32_t> node_;
  std::vector<std::int32_t> local_rank_;
  std::vector<NodeSize> nodes_;
  bool knows_cores_ = false;
};

}  // namespace rankmesh

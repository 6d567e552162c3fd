// Which node each rank sits on.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// Nodes are numbered in the order of their lowest rank. Memory: 8 bytes per rank.
class RANKMESH_API Placement {
 public:
  /// @param node_keys  one value per rank; ranks with the same value share a node.
  explicit Placement(const std::vector<std::int32_t>& node_keys);

  [[nodiscard]] std::int64_t world_size() const { return static_cast<std::int64_t>(node_.size()); }
  [[nodiscard]] std::int32_t node_count() const { return node_count_; }
  [[nodiscard]] std::int32_t node(Rank rank) const {
    return node_.at(static_cast<std::size_t>(rank.value()));
  }
  /// The rank's number among the ranks of its node, in rank order.
  [[nodiscard]] std::int32_t local_rank(Rank rank) const {
    return local_rank_.at(static_cast<std::size_t>(rank.value()));
  }
  /// How many nodes a group touches. O(size of the group).
  [[nodiscard]] std::int32_t nodes_of(const RankSet& group) const;

 private:
  std::vector<std::int32_t> node_;
  std::vector<std::int32_t> local_rank_;
  std::int32_t node_count_ = 0;
};

}  // namespace rankmesh

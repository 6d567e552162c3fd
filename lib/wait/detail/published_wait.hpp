// SPDX-License-Identifier: BSD-3-Clause
// A wait of this rank, as the other ranks of its node see it.
#pragma once

#include <map>
#include <vector>

#include "node_board.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh::detail {

/// Publishes a wait on all boards of this process, until the object is destroyed.
class PublishedWait {
 public:
  /// The ranks of a wait, as ranks of the meshes that have these boards.
  using RanksElsewhere = std::map<const NodeBoard*, RankSet>;

  /// @param own    The board of the mesh that waits; null if it has none yet.
  /// @param wait   See NodeBoard::publish().
  /// @param ranks  For the records of other meshes. Where they are missing, the members of these
  ///               meshes see the text alone.
  PublishedWait(NodeBoard* own, const record::Wait& wait, const RanksElsewhere& ranks = {});
  ~PublishedWait();
  PublishedWait(const PublishedWait&) = delete;
  PublishedWait& operator=(const PublishedWait&) = delete;

  /// Publishes the ranks of the mesh without which the wait cannot end, as determined just now. The
  /// mesh must have a board.
  void need(const std::vector<Rank>& ranks);

 private:
  NodeBoard* own_;
  bool has_needs_ = false;
};

}  // namespace rankmesh::detail

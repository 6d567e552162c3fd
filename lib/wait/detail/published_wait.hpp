// SPDX-License-Identifier: BSD-3-Clause
// A wait of this rank, as the other ranks of its node see it.
#pragma once

#include <vector>

#include "node_board.hpp"
#include "rankmesh/base/index.hpp"

namespace rankmesh::detail {

/// Publishes a wait on all boards of this process, until the object is destroyed.
class PublishedWait {
 public:
  /// @param own   The board of the mesh that waits; null if it has none yet. The members of other
  ///              meshes see the text alone.
  /// @param wait  See NodeBoard::publish().
  PublishedWait(NodeBoard* own, const record::Wait& wait);
  ~PublishedWait();
  PublishedWait(const PublishedWait&) = delete;
  PublishedWait& operator=(const PublishedWait&) = delete;

  /// Publishes the ranks of the mesh without which the wait cannot end, as determined just now. The
  /// mesh must have a board.
  void need(const std::vector<Rank>& ranks);

 private:
  NodeBoard* own_;
  std::vector<const NodeBoard*> boards_;  // on which no other wait is published
  bool has_needs_ = false;
};

}  // namespace rankmesh::detail

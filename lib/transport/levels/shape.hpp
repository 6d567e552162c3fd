// SPDX-License-Identifier: BSD-3-Clause
// Which members of a group share a node.
#pragma once

#include <cstddef>
#include <vector>

namespace rankmesh::levels {

/// The members of a group by node. Nodes are numbered in the order of their first members, and the
/// members of a node in group order. The shape is the same on all members, except for `self`.
struct Shape {
  struct Position {
    int node;
    int index;  ///< among the members of the node
  };
  /// @param node_of  for each member, a number that is the same for the members of one node.
  Shape(const std::vector<int>& node_of, int self);

  std::vector<std::vector<int>> nodes;  ///< the members of each node
  std::vector<Position> places;         ///< of each member
  int self;
  /// The number of members of a node that can share a message: the least number of members on a
  /// node. The owner may lower it to the least number of cores.
  int carriers;

  [[nodiscard]] int size() const { return static_cast<int>(places.size()); }
  [[nodiscard]] int node_count() const { return static_cast<int>(nodes.size()); }
  [[nodiscard]] const Position& place(int member) const {
    return places[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] const Position& own() const { return place(self); }
  [[nodiscard]] const std::vector<int>& members(int node) const {
    return nodes[static_cast<std::size_t>(node)];
  }
  [[nodiscard]] int members_of(int node) const { return static_cast<int>(members(node).size()); }
  /// Returns how many members this member's node has.
  [[nodiscard]] int neighbours() const { return members_of(own().node); }
};

}  // namespace rankmesh::levels

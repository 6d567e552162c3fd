// SPDX-License-Identifier: BSD-3-Clause
// Where the groups of a mesh lie in the segment of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::detail {

/// Divides a segment: what the processes of a node tell each other, then the rings of all groups,
/// then the areas of all groups. The same on every rank of the node.
class SegmentLayout {
 public:
  /// Groups with more members send messages over MPI, because each pair of members needs a ring.
  static constexpr std::int64_t most_members_with_rings = 16;
  static constexpr std::size_t largest_slot = 64 << 10;

  /// The segment of a node for the groups of a plan. They have the numbers of
  /// GroupDescription::number, less 1.
  SegmentLayout(const MeshPlan& plan, std::size_t ranks_on_node);
  /// The segment of one group inside a node: of the group 0, whose members have the numbers 0, 1,
  /// ... The processes tell each other nothing in it.
  explicit SegmentLayout(std::size_t members);

  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t slot_bytes() const { return slot_bytes_; }
  /// Returns whether the members of a group have rings.
  [[nodiscard]] bool has_rings(std::size_t group) const {
    return has_rings_ && groups_[group].senders > 0;
  }
  /// Returns the offset in the segment of the ring from one member of a group to another one.
  /// @param from   The index of the sender among the members.
  /// @param local  The number of the receiver.
  [[nodiscard]] std::size_t ring(std::size_t group, std::size_t from, std::size_t local) const;
  /// Returns the offset in the segment of the area of a member of a group.
  /// @param local  The number of the member on the node, or in the only group.
  [[nodiscard]] std::size_t area(std::size_t group, std::size_t local) const;

 private:
  struct GroupRings {
    std::size_t senders = 0;  // the members that one node can have; 0 if they have no rings
    std::size_t rings = 0;    // where the rings of the group begin
  };
  void add_group(std::int64_t size);

  std::size_t ranks_;
  std::vector<GroupRings> groups_;
  bool has_rings_ = true;
  std::size_t end_of_rings_ = 0;
  std::size_t slot_bytes_ = largest_slot;
  std::size_t bytes_ = 0;
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The shared memory of one mesh on one node.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/settings.hpp"
#include "rankmesh/base/symmetric_window.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "segment_layout.hpp"
#include "transport/detail/hierarchical_transport.hpp"
#include "transport/detail/node_memory.hpp"
#include "transport/detail/node_segments.hpp"
#include "transport/detail/shm_transport.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns the members of a group, for messages and as the key of their own messages.
[[nodiscard]] GroupMembers group_members(const GroupDescription& group,
                                         const ControlPlane& control);

/// The shared-memory transport of a group, or the reason why it has none.
struct SharedTransport {
  std::unique_ptr<ShmTransport> transport;
  std::string why_not;
  /// What the hierarchical transport of the group needs, or the reason why it has none.
  std::optional<HierarchicalTransport::Nodes> levels{};
  std::string why_no_levels = "its members are on one node";
};

/// Owns one segment per node for all groups of the mesh. The area of a rank in a group is computed
/// from the number of the group in the plan and the number of the rank on the node. So a group
/// needs no collective of its own, and its members need no information about other groups.
class SharedMemoryBackend {
 public:
  /// Returns the segment that the groups of a plan need on this rank's node.
  /// @param memory  While the segment is created, gets what reads the memory of the node's
  ///                processes. It begins with the tables in the segment.
  static SegmentRequest request(const SegmentLayout& layout, const ControlPlane& control,
                                SingleCopy single_copy, std::shared_ptr<NodeMemory>& memory);
  /// Takes the node's segment, and waits until all ranks of the node have found out whether they
  /// can read each other's memory. Collective over the node; blocks, but sends no message. If the
  /// segment could not be created, the groups of the node use MPI, and why_not() returns the
  /// reason.
  /// @throws TimeoutError if ranks are missing; the error names them.
  SharedMemoryBackend(SegmentLayout layout, NodeSegment segment, std::shared_ptr<NodeMemory> memory,
                      std::shared_ptr<ControlPlane> control);
  ~SharedMemoryBackend() { close_windows(); }
  SharedMemoryBackend(const SharedMemoryBackend&) = delete;
  SharedMemoryBackend& operator=(const SharedMemoryBackend&) = delete;

  /// Returns whether all members of a group share the memory of this node. The same on all members.
  [[nodiscard]] bool reaches(const GroupDescription& group) const { return why_not(group).empty(); }
  /// Returns why the ranks of this node share no memory; empty if they do, or if this rank is
  /// alone.
  [[nodiscard]] std::string why_not_on_node() const {
    return ranks_on_node_.size() == 1 ? "" : why_not_;
  }
  /// Creates the transport of a group of the plan. Local.
  [[nodiscard]] SharedTransport make_transport(const GroupDescription& group,
                                               const Recording& recording) const;
  /// Returns what creates the segment of a dynamic group. Local.
  [[nodiscard]] SegmentCreation dynamic_memory(const GroupDescription& group) const;
  /// Creates the transport of a dynamic group, which has a segment of its own. Collective over the
  /// members; blocks.
  /// @param comm    The communicator of the group.
  /// @param memory  All members have mapped it, or have tried to.
  /// @throws TimeoutError if members are missing at the deadline; the error names them.
  [[nodiscard]] SharedTransport make_dynamic_transport(const GroupDescription& group,
                                                       const mpi::CommunicatorView& comm,
                                                       SegmentCreation& memory,
                                                       const Recording& recording) const;

  /// Allocates symmetric memory. Collective over the mesh.
  /// @param agreement  What all ranks must pass alike.
  /// @param groups     The groups of this rank whose collectives use the memory directly.
  std::shared_ptr<const SymmetricWindow> allocate(
      std::size_t bytes, const Agreement& agreement,
      const std::vector<const GroupDescription*>& groups);
  /// Returns what reads the memory of the other ranks of the node; null if the system refuses this.
  [[nodiscard]] std::shared_ptr<NodeMemory> readable_memory() const {
    return memory_ != nullptr && memory_->why_not().empty() ? memory_ : nullptr;
  }
  /// Frees the symmetric memory. Local; the first step of closing a mesh.
  void close_windows() noexcept;
  /// Frees the segment. Local; call it after the connections are closed.
  void close() { segment_ = {}; }

 private:
  [[nodiscard]] std::string why_not(const GroupDescription& group) const;
  void finish_direct_reads();
  void agree_on_levels();
  void add_levels(SharedTransport& shared, const GroupDescription& group) const;
  [[nodiscard]] ShmTransport::Place members_of(const GroupDescription& group) const;
  [[nodiscard]] ShmTransport::Place place_of(const GroupDescription& group) const;
  struct Allocation {
    SharedSegment segment;
    std::shared_ptr<SymmetricWindow> window;
  };

  SegmentLayout layout_;
  std::shared_ptr<ControlPlane> control_;
  std::vector<Rank> ranks_on_node_;
  SharedSegment segment_;
  std::shared_ptr<NodeMemory> memory_;  // null if the node has no segment
  std::string why_not_;
  bool all_nodes_share_memory_ = false;  // with several nodes
  std::vector<Allocation> allocations_;
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Memory that the ranks of a node share.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "group/detail/connection.hpp"
#include "node_members.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/shared_segment.hpp"

namespace rankmesh::detail {

/// A segment that the ranks of this node want.
struct SegmentRequest {
  std::string activity;   ///< For messages: the creation of this segment.
  std::size_t bytes = 0;  ///< The same on all ranks of the node. 0: this node wants none.
  /// Called when this rank has mapped the segment, and before any rank may use it. All ranks see
  /// what it writes. It is called again if the node has to create another segment instead.
  std::function<void(std::byte* data)> prepare{};
};

/// The segment of this node.
struct NodeSegment {
  SharedSegment segment;  ///< Empty if the node wants none, or if it could not be created.
  int descriptor = -1;    ///< A descriptor of its file that this process has opened; -1 if none.
  std::optional<SharedMemoryError> error{};  ///< The same on all ranks of the node.

  NodeSegment() = default;
  NodeSegment(NodeSegment&& other) noexcept;
  NodeSegment& operator=(NodeSegment&&) = delete;
  ~NodeSegment();
};

/// Creates segments on this node. Collective over the node; blocks. The first rank sends each other
/// one where the files are (40 bytes per segment). The ranks then count in the memory itself how
/// many of them have mapped it. A rank that cannot map it tells the first rank, which then sends
/// the outcome to all; and the same begins again, with names in /dev/shm.
/// @param requests  At most two. All ranks of the node pass the same ones.
/// @throws TimeoutError if ranks are missing; the error names them.
std::vector<NodeSegment> make_node_segments(ControlPlane& control, const Placement& placement,
                                            const std::vector<SegmentRequest>& requests);

/// Creates the segment of a group inside this node, with the same messages between its members.
/// Collective over the members; blocks.
/// @param comm  The communicator of the group.
/// @throws TimeoutError if members are missing; the error names them.
NodeSegment make_group_segment(ControlPlane& control, const GroupDescription& group,
                               const mpi::CommunicatorView& comm, const SegmentRequest& request);

}  // namespace rankmesh::detail

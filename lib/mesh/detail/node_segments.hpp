// SPDX-License-Identifier: BSD-3-Clause
// The nodes of a mesh, and memory that the ranks of each node share. These steps need no
// communicator of the node: all ranks of the mesh take part in each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/transport/shared_segment.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "rankmesh/wait/mpi_memory.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns the values of all ranks, which are plain data. Collective over the communicator; blocks
/// at most until the deadline. Costs one MPI_Iallgather.
/// @throws TimeoutError if ranks are missing; the error names them.
template <class T>
std::vector<T> gather(const Participants& participants, const T& mine, const WaitPoint& point) {
  struct Exchange {
    T mine;
    std::vector<T> all;
  };
  MpiMemory<Exchange> exchange{mine,
                               std::vector<T>(static_cast<std::size_t>(participants.comm.size()))};
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Iallgather(&exchange->mine, sizeof(T), MPI_BYTE, exchange->all.data(), sizeof(T),
                            MPI_BYTE, participants.comm.native(), &request),
             "MPI_Iallgather");
  exchange.wait(request, *participants.monitor, point, participants.deadline());
  return std::move(exchange->all);
}

/// What the ranks tell each other before the mesh has a communicator.
struct JobFacts {
  /// Ranks with the same host name, on a machine that was started once, are on one node.
  Placement placement;
  std::uint64_t key_of_mesh = 0;  ///< Differs from that of other meshes.
  bool agree_on_devices = false;  ///< Whether the summaries of all ranks are equal.
};
/// Gathers the facts of all ranks, and receives the messages that were sent on the program's
/// communicator. Collective; blocks. Costs one gather() of 200 bytes per rank.
/// @param participants  The program's communicator.
/// @param devices       What this rank has to say about devices.
JobFacts gather_facts(const Participants& participants, const Agreement::Summary& devices);

/// Returns the ranks of this rank's node, in ascending order.
std::vector<Rank> ranks_of_node(const Placement& placement, Rank self);

/// A segment that the ranks of this node want.
struct SegmentRequest {
  std::string activity;   ///< For messages: the creation of this segment.
  std::size_t bytes = 0;  ///< The same on all ranks of the node. 0: this node wants none.
};

/// The segment of this node.
struct NodeSegment {
  SharedSegment segment;  ///< Empty if the node wants none, or if it could not be created.
  int descriptor = -1;    ///< A descriptor of its file that this process has opened; -1 if none.
  std::optional<SharedMemoryError> error;  ///< The same on all ranks of the node.

  NodeSegment() = default;
  NodeSegment(NodeSegment&& other) noexcept;
  NodeSegment& operator=(NodeSegment&&) = delete;
  ~NodeSegment();
};

/// Creates segments on all nodes. Collective over the mesh; blocks. Costs two gather()s of 48 bytes
/// per rank and segment, and two more if a node has to use names in /dev/shm. Costs nothing if
/// every rank is alone on its node and wants nothing.
/// @param requests  At most two. All ranks pass the same number.
std::vector<NodeSegment> make_node_segments(ControlPlane& control, const Placement& placement,
                                            const std::vector<SegmentRequest>& requests);

}  // namespace rankmesh::detail

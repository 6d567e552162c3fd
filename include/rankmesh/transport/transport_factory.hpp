// SPDX-License-Identifier: BSD-3-Clause
// The factories with which a program adds transports of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// Describes a group to the factory of a transport.
struct TransportGroup {
  std::string name;    ///< For messages: the name of the first family of the group.
  RankSet ranks;       ///< The members in group order, as ranks of the mesh.
  RankInGroup self{};  ///< This rank.
  /// The communicator of the members, in group order. The factory may call collectives of MPI on
  /// it. After the factory has returned, rankmesh uses the communicator for messages of its own. A
  /// transport that needs MPI later duplicates it.
  mpi::CommunicatorView comm;
  std::int32_t nodes = 1;  ///< The number of nodes of the members.
  /// The time limit of an operation of the group: the option `deadline` if it is set, otherwise the
  /// timeout of the group.
  Deadline::Duration timeout{600};
};

/// Makes the transport of one group of this rank. rankmesh calls the factory once for each group of
/// at least two ranks, while the group is opened, on all members and in the same order. The factory
/// may wait for the other members. If the group should not have this transport, the factory returns
/// null on all members. If it throws on a rank, all ranks throw MismatchError.
///
/// rankmesh destroys the transport when the group is closed, or when the mesh is destroyed without
/// close(). The destructor must not wait for other members.
using TransportFactory = std::function<std::unique_ptr<Transport>(const TransportGroup& group)>;

}  // namespace rankmesh

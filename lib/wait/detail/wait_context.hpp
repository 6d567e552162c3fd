// SPDX-License-Identifier: BSD-3-Clause
// What a wait monitor knows besides its communicator.
#pragma once

#include <memory>

#include "base/detail/log.hpp"
#include "node_board.hpp"
#include "rankmesh/base/deadline.hpp"

namespace rankmesh::detail {

struct MeshLock;

/// The node and the log of a mesh, for its wait monitors.
struct WaitContext {
  std::shared_ptr<NodeBoard> board;  ///< Null before the nodes are known.
  std::shared_ptr<const Log> log;    ///< Receives reports of stalls; null if there are none.
  Deadline::Duration stall{30};      ///< The length of a wait that is reported.
  MeshLock* lock = nullptr;          ///< Of the mesh; null before its groups are open.
};

}  // namespace rankmesh::detail

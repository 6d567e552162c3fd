// SPDX-License-Identifier: BSD-3-Clause
// Creates the board of a node.
#pragma once

#include <memory>

#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mpi/node.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Creates the board of this rank's node. Collective over the ranks of the node; blocks. If there
/// is no memory that they share, the board holds this rank alone.
std::shared_ptr<NodeBoard> open_board(const Placement& placement, const mpi::Node& node,
                                      ControlPlane& control);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Creates the board of a node.
#pragma once

#include <memory>

#include "node_segments.hpp"
#include "rankmesh/layout/placement.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// Returns what the board of this rank's node needs.
SegmentRequest board_request(const ControlPlane& control);

/// Creates the board of this rank's node in its segment. Local. If the ranks of the node share no
/// memory, the board holds this rank alone.
std::shared_ptr<NodeBoard> open_board(NodeSegment segment, const ControlPlane& control);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Steps in shared memory for messages that consist of a block for each member, see Piece.
#pragma once

#include "transport/levels/carrier_steps.hpp"

namespace rankmesh::levels {

/// Each carrier reduces the inputs of its node, in group order, for the blocks that it carries.
extern const CarrierSteps reduce_blocks;
/// Each carrier copies the blocks of the members of its node that it carries.
extern const CarrierSteps collect_blocks;
/// Each carrier copies the blocks that it carries for all nodes from the root. Each other member of
/// the node copies its own block from the root.
extern const shm::Algorithm take_blocks;
/// Each member copies its own block from its carrier.
extern const CarrierSteps hand_out_blocks;
/// Each member copies all blocks from the carriers to its output.
extern const CarrierSteps spread_blocks;
/// The root, which is carrier 0, copies all blocks from the carriers to its output.
extern const shm::Algorithm blocks_to_root;

}  // namespace rankmesh::levels

// SPDX-License-Identifier: BSD-3-Clause
// Steps in shared memory for messages that consist of a block for each member, see Piece.
#pragma once

#include "transport/shm/algorithm.hpp"

namespace rankmesh::levels {

/// Each carrier reduces the inputs of its node, in group order, for the blocks that it carries.
[[nodiscard]] const shm::Algorithm& reduce_blocks(int carriers);
/// Each carrier copies the blocks of the members of its node that it carries.
[[nodiscard]] const shm::Algorithm& collect_blocks(int carriers);
/// Each carrier copies the blocks that it carries, for all nodes, from the root, and each other
/// member of the node its own one.
extern const shm::Algorithm take_blocks;
/// Each member copies its own block from its carrier.
[[nodiscard]] const shm::Algorithm& hand_out_blocks(int carriers);
/// Each member copies all blocks from the carriers to its output.
[[nodiscard]] const shm::Algorithm& spread_blocks(int carriers);
/// The root, which is carrier 0, copies all blocks from the carriers to its output.
extern const shm::Algorithm blocks_to_root;

}  // namespace rankmesh::levels

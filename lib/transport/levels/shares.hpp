// SPDX-License-Identifier: BSD-3-Clause
// Steps in shared memory for messages that are divided into shares, see Piece.
#pragma once

#include "transport/levels/carrier_steps.hpp"

namespace rankmesh::levels {

/// Each carrier reduces its share of the inputs of its node, in group order, to its partial result.
extern const CarrierSteps reduce_shares;
/// All members copy the shares of the carriers to their outputs.
extern const CarrierSteps spread_shares;
/// The root, which is carrier 0, copies the shares of the other carriers to its output.
extern const shm::Algorithm shares_to_root;
/// The root copies the piece to the outputs of its node.
extern const shm::Algorithm spread_from_root;

}  // namespace rankmesh::levels

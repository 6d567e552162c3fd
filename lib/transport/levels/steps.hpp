// SPDX-License-Identifier: BSD-3-Clause
// The steps in the shared memory of a node, see Chunk.
#pragma once

#include "transport/levels/plan.hpp"

namespace rankmesh::levels {

/// A step in two forms. With several carriers, all members of the node wait for each other. With
/// one carrier, which is the root of the step, the other members synchronise only with the carrier.
class CarrierSteps {
 public:
  /// @param step         The step for several carriers.
  /// @param flow_of_one  The flow of the same step with one carrier.
  constexpr CarrierSteps(const shm::Algorithm& step, shm::Flow flow_of_one)
      : of_several_{step}, of_one_{step} {
    of_one_.first.flow = flow_of_one;
  }
  /// Returns the form for this number of carriers.
  [[nodiscard]] constexpr const shm::Algorithm* operator()(int carriers) const {
    return carriers == 1 ? &of_one_ : &of_several_;
  }

 private:
  shm::Algorithm of_several_;
  shm::Algorithm of_one_;
};

/// Each carrier reduces the inputs of its node, in group order, for the parts that it carries, to
/// its partial results.
extern const CarrierSteps reduce_parts;
/// Each carrier copies the blocks of the members of its node that it carries.
extern const CarrierSteps collect_blocks;
/// All members copy all parts from the carriers to their outputs.
extern const CarrierSteps spread_parts;
/// Each member copies its own block from its carrier.
extern const CarrierSteps hand_out_blocks;
/// The root, which is carrier 0, copies all parts from the carriers to its output.
extern const shm::Algorithm parts_to_root;
/// All members copy all parts from the root to their outputs.
extern const shm::Algorithm spread_from_root;
/// Each member copies its own block from the root, and each carrier the blocks that it carries.
extern const shm::Algorithm take_blocks;

}  // namespace rankmesh::levels

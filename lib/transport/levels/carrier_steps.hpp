// SPDX-License-Identifier: BSD-3-Clause
// Steps in shared memory whose flow depends on the number of carriers.
#pragma once

#include "transport/shm/algorithm.hpp"

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
  [[nodiscard]] constexpr const shm::Algorithm& operator()(int carriers) const {
    return carriers == 1 ? of_one_ : of_several_;
  }

 private:
  shm::Algorithm of_several_;
  shm::Algorithm of_one_;
};

}  // namespace rankmesh::levels

// SPDX-License-Identifier: BSD-3-Clause
// How a group's NCCL communicator was created.
#pragma once

#include <cstdint>
#include <string>

namespace rankmesh {

/// Reports how this rank created an NCCL communicator. Communicators that are created together pass
/// each phase together, so each time is the time of all these communicators together. Times are in
/// seconds.
struct BootstrapReport {
  std::string method;  ///< `unique ID`, `4 unique IDs`, `split of 'dp_tp'` or `adopted`.
  std::int64_t opened_together = 0;  ///< Communicators of this rank that were created together.
  double unique_ids = 0;
  double broadcasts = 0;
  double barriers = 0;
  double inits = 0;
  double splits = 0;
  double warm_up =
      0;  ///< Of this communicator: a first all-reduce, and messages with both neighbours.
  /// An estimate of the device memory of the communicator, in bytes. It is the decrease of the free
  /// memory during the warm-up of this communicator, plus its share of the decrease during the
  /// inits. Other processes on the device make the estimate wrong. It is 0 if the free memory did
  /// not decrease.
  std::int64_t device_memory = 0;
};

}  // namespace rankmesh

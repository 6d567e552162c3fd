// How a group's NCCL communicator came to be.
#pragma once

#include <cstdint>
#include <string>

namespace rankmesh {

/// What this rank saw. Groups that are opened together go through each phase together, so the times
/// are those of the whole batch; seconds.
struct BootstrapReport {
  std::string method;                ///< `unique ID`, `4 unique IDs`, `split of 'dp_tp'`, `adopted`
  std::int64_t opened_together = 0;  ///< communicators of this rank in the batch
  double unique_ids = 0;
  double broadcasts = 0;
  double barriers = 0;
  double inits = 0;
  double splits = 0;
  double warm_up = 0;  ///< of this communicator: a first all-reduce, and both neighbours
  /// Bytes by which the device's free memory fell: during its own warm-up, and its share of what
  /// the inits of the batch took together. Other processes on the device disturb it; 0 where it did
  /// not fall.
  std::int64_t device_memory = 0;
};

}  // namespace rankmesh

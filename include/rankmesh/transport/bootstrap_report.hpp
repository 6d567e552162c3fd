// SPDX-License-Identifier: BSD-3-Clause
// A report about the creation of a group's NCCL communicator.
#pragma once

#include <cstdint>
#include <string>

namespace rankmesh {

/// Reports how this rank created an NCCL communicator. Times are in seconds. If several
/// communicators are created together, each phase runs for all of them at once. The times of the
/// phases are totals for all communicators that were created together.
struct BootstrapReport {
  std::string method;  ///< For example `unique ID`, `4 unique IDs`, `split of 'dp_tp'`, `adopted`.
  std::int64_t opened_together = 0;  ///< How many communicators this rank created together.
  double unique_ids = 0;             ///< Seconds for creating the unique IDs.
  double broadcasts = 0;             ///< Seconds for broadcasting them.
  double barriers = 0;               ///< Seconds in the barriers of the groups.
  double inits = 0;                  ///< Seconds in the inits of NCCL.
  double splits = 0;                 ///< Seconds in the splits of NCCL.
  /// The time of the warm-up of this communicator alone. The warm-up is one all-reduce, and
  /// messages to and from both neighbours.
  double warm_up = 0;
  /// An estimate of the device memory that the communicator uses, in bytes. The estimate is the sum
  /// of two decreases of the device's free memory: the decrease during the warm-up of this
  /// communicator, and this communicator's share of the decrease during the inits. The estimate is
  /// wrong if other processes use the device at the same time. It is 0 if the free memory did not
  /// decrease.
  std::int64_t device_memory = 0;
};

}  // namespace rankmesh

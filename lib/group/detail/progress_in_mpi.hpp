// SPDX-License-Identifier: BSD-3-Clause
// Progress of messages in shared memory while this rank is blocked inside MPI.
#pragma once

#include <atomic>
#include <thread>

#include "operations_in_flight.hpp"

namespace rankmesh::detail {

/// As long as it exists, a thread continues the messages that are in flight. They make progress
/// only in calls of rankmesh, and a blocking collective of MPI may wait for a rank that waits for
/// one of these messages first. MPI would continue messages of its own meanwhile.
///
/// The thread calls no function of MPI. The thread that made the object must be inside MPI, and
/// must not use the mesh before it destroys the object.
class ProgressInMpi {
 public:
  explicit ProgressInMpi(OperationsInFlight& operations);
  ~ProgressInMpi();
  ProgressInMpi(const ProgressInMpi&) = delete;
  ProgressInMpi& operator=(const ProgressInMpi&) = delete;

 private:
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace rankmesh::detail

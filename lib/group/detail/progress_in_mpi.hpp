// SPDX-License-Identifier: BSD-3-Clause
// Progress of messages in shared memory while this rank is blocked inside MPI.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <thread>
#include <vector>

#include "mesh_runtime.hpp"

namespace rankmesh::detail {

/// As long as an object of this class exists, a helper thread advances the messages in shared
/// memory that the calling thread has in flight, in all meshes that are not in another call. Such
/// messages make progress only in calls of rankmesh, and a blocking collective of MPI may wait for
/// a rank that waits for one of them first. MPI itself would advance its own messages in this
/// situation. If no message is in flight, there is no helper thread.
///
/// The helper thread calls no function of MPI. The thread that made the object must be inside MPI,
/// and must not use the meshes before it destroys the object.
class ProgressInMpi {
 public:
  /// @param current  The mesh whose call blocks.
  /// @param meshes  See EverythingInFlight::with_polled_of_this_thread().
  ProgressInMpi(MeshRuntime& current, const std::vector<std::shared_ptr<MeshRuntime>>& meshes);
  ~ProgressInMpi();
  ProgressInMpi(const ProgressInMpi&) = delete;
  ProgressInMpi& operator=(const ProgressInMpi&) = delete;

 private:
  std::list<GuestLock> locks_;
  std::vector<OperationsInFlight*> operations_;
  std::atomic<bool> has_ended_{false};
  std::thread thread_;
};

}  // namespace rankmesh::detail

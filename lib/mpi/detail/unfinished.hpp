// SPDX-License-Identifier: BSD-3-Clause
// A record of this process: why MPI cannot be finalised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Marks a mesh as open in the record of this process, from the construction of this object until
/// close(). If the object is destroyed before close(), the record keeps the mesh.
///
/// Thread safety: meshes of different threads may use the record at the same time.
class OpenMark {
 public:
  /// @param mesh         The text of the mesh, for messages.
  /// @param ranks        The number of ranks of the mesh.
  /// @param coordinates  This rank's coordinates in the mesh, for messages.
  OpenMark(const std::string& mesh, int ranks, const std::string& coordinates);
  ~OpenMark();
  OpenMark(const OpenMark&) = delete;
  OpenMark& operator=(const OpenMark&) = delete;

  /// Removes the mesh from the record. A second call does nothing.
  void close() noexcept;

 private:
  std::uint64_t number_;
};

/// Records that MPI may use memory of this process until the process ends, because a wait for an
/// operation has failed.
/// @param activity  The operation, for messages.
void record_abandoned(const std::string& activity) noexcept;

/// Records requests that the program has abandoned but that may still complete by themselves. MPI
/// can be finalised once they are complete.
void record_requests(const std::vector<MPI_Request>& requests) noexcept;

/// Records that this process has opened a mesh that may survive: the job goes on without it, so its
/// end no longer ends the job.
void record_survivor() noexcept;
[[nodiscard]] bool is_survivor() noexcept;
/// Returns whether the launcher lets the job go on when a rank dies, as far as it says so.
[[nodiscard]] bool may_job_lose_ranks() noexcept;
/// Records the processes of a mesh that may survive, when it is closed: they still have to come to
/// MPI_Finalize.
/// @param processes  Those of this node.
/// @param timeout  Of the mesh. Nobody sees the ends of processes on other nodes any more.
void record_companions(const std::vector<std::int64_t>& processes,
                       rankmesh::Deadline::Duration timeout) noexcept;
/// Returns whether one of them has ended.
[[nodiscard]] bool has_companion_ended() noexcept;
/// Returns until when this process waits for them at its end, from now on.
[[nodiscard]] rankmesh::Deadline deadline_of_companions() noexcept;
/// Sets what a process that is_survivor() does before its end. It may record losses.
void on_end_of_survivor(void (*action)()) noexcept;
/// Does it, once.
void before_end_of_survivor() noexcept;
/// Records that ranks are lost, without which MPI is not finalised.
void record_loss() noexcept;
[[nodiscard]] bool has_loss() noexcept;

/// Why MPI cannot be finalised, and what the program should do instead, for messages.
struct UnfinishedReason {
  std::string what;
  std::string hint;
};
/// Returns all reasons; none if MPI can be finalised. Tests the recorded requests, so MPI must
/// be active.
std::vector<UnfinishedReason> unfinished_reasons();

/// Returns this rank's coordinates in the largest mesh that is open, or else in the one that was
/// closed last, or an empty text.
std::string recorded_coordinates();

}  // namespace rankmesh::mpi

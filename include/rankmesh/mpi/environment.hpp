// SPDX-License-Identifier: BSD-3-Clause
// Initialises and finalises MPI.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// Says which threads may call MPI. The levels are in ascending order.
enum class ThreadLevel : int {
  single = MPI_THREAD_SINGLE,
  funneled = MPI_THREAD_FUNNELED,
  serialized = MPI_THREAD_SERIALIZED,
  multiple = MPI_THREAD_MULTIPLE,
};

/// The order in which NCCL starts the kernels of different communicators.
enum class NcclLaunchOrder : std::uint8_t {
  unchanged,  ///< NCCL's default: the program must issue operations in the same order on all ranks.
  implicit,   ///< NCCL uses the order of the calls. Environment sets NCCL_LAUNCH_ORDER_IMPLICIT=1
              ///< (NCCL 2.26), unless the variable is already set.
};

/// What an Environment that initialised MPI does at its end if MPI cannot be finalised.
enum class UncleanEnd : std::uint8_t {
  abort_job,          ///< Writes one line to stderr, and ends the job with MPI_Abort.
  leave_to_launcher,  ///< Writes one line to stderr, and neither finalises MPI nor ends the job.
                      ///< The launcher finds a process that has ended without MPI_Finalize.
};

/// Initialises MPI in the constructor and finalises it in the destructor. If the program has
/// already initialised MPI, this object neither initialises nor finalises it, and nothing of what
/// follows applies. rankmesh::run() makes an Environment and also handles exceptions.
///
/// The constructor is collective over MPI_COMM_WORLD if it initialises MPI, and the destructor is
/// collective if it finalises MPI.
///
/// MPI_Finalize waits for all ranks, and it can crash while operations are in progress. So the
/// destructor does not finalise MPI in these cases:
/// - A mesh was opened and not closed: other ranks may wait for this rank.
/// - A wait for an operation of MPI has failed: MPI may still use the memory of that operation.
/// - An exception unwinds the stack: other ranks may wait in another operation.
///
/// In the first two cases, the destructor writes one line to stderr and calls MPI_Abort on
/// MPI_COMM_WORLD, with status 1. In the third case, the program first handles the exception; then
/// the same happens when the process ends, with the status of the process. If that status is 0 and
/// the first two cases do not apply, MPI is finalised after all. A new Environment continues to use
/// MPI after an exception.
///
/// While this object exists, the same applies to a process that calls exit(), and to exceptions
/// that are not caught: a handler (std::set_terminate) writes their text and ends the job. It also
/// runs the handler that the program has set before. RANKMESH_LOG=off silences the lines.
class RANKMESH_API Environment {
 public:
  /// @param order  The launch order of NCCL. NCCL reads its environment when it is opened, so
  /// create this object before the first mesh.
  /// @param end    What to do if MPI cannot be finalised.
  /// @throws UsageError  MPI has already been finalised, or offers a lower level than `wanted`.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled,
                       NcclLaunchOrder order = NcclLaunchOrder::unchanged,
                       UncleanEnd end = UncleanEnd::abort_job);
  Environment(int& argc, char**& argv, ThreadLevel wanted = ThreadLevel::funneled,
              NcclLaunchOrder order = NcclLaunchOrder::unchanged,
              UncleanEnd end = UncleanEnd::abort_job);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Returns whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool initialised_here() const noexcept { return initialised_here_; }
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return level_; }

 private:
  Environment(int* argc, char*** argv, ThreadLevel wanted, NcclLaunchOrder order, UncleanEnd end);

  bool initialised_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  int exceptions_;
};

}  // namespace rankmesh::mpi

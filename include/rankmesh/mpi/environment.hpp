// SPDX-License-Identifier: BSD-3-Clause
// Initialises and finalises MPI.
#pragma once

#include <cstdint>
#include <string>

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
  unchanged,  ///< NCCL's default. The program must issue operations in the same order on all ranks.
  implicit,   ///< NCCL uses the order of the calls. Environment sets NCCL_LAUNCH_ORDER_IMPLICIT=1
              ///< (NCCL 2.26), unless the variable is already set.
};

/// What an Environment that initialised MPI does at its end if MPI cannot be finalised.
enum class UncleanEnd : std::uint8_t {
  abort_job,          ///< Writes one line to stderr, and ends the job with MPI_Abort.
  leave_to_launcher,  ///< Writes one line to stderr, and neither finalises MPI nor ends the job.
                      ///< The launcher finds a process that has ended without MPI_Finalize.
};

/// Initialises MPI in the constructor and finalises MPI in the destructor. If MPI is already
/// initialised when the constructor runs, this object neither initialises nor finalises MPI, and
/// does none of the things described below. rankmesh::run() creates an Environment and also handles
/// exceptions.
///
/// The constructor is collective over MPI_COMM_WORLD if it initialises MPI, and the destructor is
/// collective if it finalises MPI.
///
/// MPI_Finalize waits for all ranks, and it can crash while operations are in progress. Therefore
/// the destructor calls MPI_Abort instead, or leaves the end to the end of the process, if a mesh
/// is still open, if a wait for MPI has failed, or if an exception unwinds the stack. While this
/// object exists, exit() and exceptions that the program does not catch end the job in the same
/// way. docs/programs.md ("The end of a program") has the cases, and what is written to stderr.
class RANKMESH_API Environment {
 public:
  /// @param order  the launch order of NCCL. NCCL reads environment variables when it is loaded, so
  /// a program must create this object before the first mesh.
  /// @param end    what to do if MPI cannot be finalised.
  /// @throws UsageError if MPI has already been finalised, or if MPI provides a lower thread level
  /// than `wanted`. If the program has initialised MPI itself, any level is enough for `funneled`.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled,
                       NcclLaunchOrder order = NcclLaunchOrder::unchanged,
                       UncleanEnd end = UncleanEnd::abort_job);
  /// Does the same, and passes the arguments of the program to MPI.
  Environment(int& argc, char**& argv, ThreadLevel wanted = ThreadLevel::funneled,
              NcclLaunchOrder order = NcclLaunchOrder::unchanged,
              UncleanEnd end = UncleanEnd::abort_job);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Returns whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool initialised_here() const noexcept { return initialised_here_; }
  /// Returns the thread level that MPI offers.
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return level_; }

 private:
  Environment(int* argc, char*** argv, ThreadLevel wanted, NcclLaunchOrder order, UncleanEnd end);

  bool initialised_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  int exceptions_;
};

/// Returns the text of MPI_Get_library_version(), which names the library and its version. Local.
/// MPI_Init is not needed.
RANKMESH_API std::string library_text();

}  // namespace rankmesh::mpi

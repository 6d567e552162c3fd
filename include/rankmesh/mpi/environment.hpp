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
  unchanged,  ///< NCCL's default. The program must issue operations in the same order on all ranks.
  implicit,   ///< NCCL uses the order of the calls. Environment sets NCCL_LAUNCH_ORDER_IMPLICIT=1
              ///< (NCCL 2.26), unless the variable is already set.
};

/// Initialises MPI in the constructor and finalises MPI in the destructor. If MPI is already
/// initialised when the constructor runs, this object neither initialises nor finalises MPI.
///
/// The constructor is collective over MPI_COMM_WORLD if it initialises MPI, and the destructor is
/// collective if it finalises MPI. If an exception unwinds the stack, the destructor does not
/// finalise MPI. In this situation, other ranks may wait in another operation, and MPI_Finalize
/// would wait for these ranks. The launcher then ends the job because of this rank's error.
class RANKMESH_API Environment {
 public:
  /// @param order  the launch order of NCCL. NCCL reads environment variables when it is loaded, so
  /// a program must create this object before the first mesh.
  /// @throws UsageError if MPI has already been finalised, or if MPI provides a lower thread level
  /// than `wanted`.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled,
                       NcclLaunchOrder order = NcclLaunchOrder::unchanged);
  Environment(int& argc, char**& argv, ThreadLevel wanted = ThreadLevel::funneled,
              NcclLaunchOrder order = NcclLaunchOrder::unchanged);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Returns whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool initialised_here() const noexcept { return initialised_here_; }
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return level_; }

 private:
  Environment(int* argc, char*** argv, ThreadLevel wanted, NcclLaunchOrder order);

  bool initialised_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  int exceptions_;
};

}  // namespace rankmesh::mpi

// MPI's life in this process.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// What threads may call MPI, weakest first.
enum class ThreadLevel : int {
  single = MPI_THREAD_SINGLE,
  funneled = MPI_THREAD_FUNNELED,
  serialized = MPI_THREAD_SERIALIZED,
  multiple = MPI_THREAD_MULTIPLE,
};

/// In which order NCCL starts the kernels of different communicators.
enum class NcclLaunchOrder : std::uint8_t {
  unchanged,  ///< as the environment says; NCCL's default asks the program for one order on all
              ///< ranks
  implicit,   ///< as the host issues them: NCCL_LAUNCH_ORDER_IMPLICIT=1 (NCCL 2.26), unless it is
              ///< set already
};

/// Initialises MPI, or attaches to an MPI that the program initialised. Who initialised also
/// finalises.
///
/// Construction and destruction are collective over MPI_COMM_WORLD only where they initialise and
/// finalise. If the stack is unwinding in the destructor, MPI is not finalised: the other ranks may
/// wait elsewhere, and a finalisation would wait for them; the launcher then ends the job with this
/// rank's error.
class RANKMESH_API Environment {
 public:
  /// @param order  NCCL reads its environment once, when it is loaded: ask for it before the first
  /// mesh.
  /// @throws UsageError where MPI was finalised already, or offers a lower level than `wanted`.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled,
                       NcclLaunchOrder order = NcclLaunchOrder::unchanged);
  Environment(int& argc, char**& argv, ThreadLevel wanted = ThreadLevel::funneled,
              NcclLaunchOrder order = NcclLaunchOrder::unchanged);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool initialised_here() const noexcept { return initialised_here_; }
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return level_; }

 private:
  Environment(int* argc, char*** argv, ThreadLevel wanted, NcclLaunchOrder order);

  bool initialised_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  int exceptions_;
};

}  // namespace rankmesh::mpi

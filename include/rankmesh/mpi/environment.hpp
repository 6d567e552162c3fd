// MPI's life in this process.
#pragma once

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

/// Initialises MPI, or attaches to an MPI that the program initialised. Who initialised also finalises.
///
/// Construction and destruction are collective over MPI_COMM_WORLD only where they initialise and finalise.
/// If the stack is unwinding in the destructor, MPI is not finalised: the other ranks may wait elsewhere, and
/// a finalisation would wait for them; the launcher then ends the job with this rank's error.
class RANKMESH_API Environment {
 public:
  /// @throws UsageError where MPI was finalised already, or offers a lower level than `wanted`.
  explicit Environment(ThreadLevel wanted = ThreadLevel::funneled);
  Environment(int& argc, char**& argv, ThreadLevel wanted = ThreadLevel::funneled);
  ~Environment();
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

  /// Whether this object initialised MPI and will finalise it.
  [[nodiscard]] bool initialised_here() const noexcept { return initialised_here_; }
  [[nodiscard]] ThreadLevel thread_level() const noexcept { return level_; }

 private:
  Environment(int* argc, char*** argv, ThreadLevel wanted);

  bool initialised_here_ = false;
  ThreadLevel level_ = ThreadLevel::single;
  int exceptions_;
};

}  // namespace rankmesh::mpi

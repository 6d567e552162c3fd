// SPDX-License-Identifier: BSD-3-Clause
// Makes MPI return errors, even if the program has set another error handler.
#pragma once

#include <optional>

#include "rankmesh/mpi/native.hpp"

namespace rankmesh::mpi {

/// While an object of this class exists, MPI returns the errors of a communicator to its caller.
/// Afterwards the handler of the program is set again.
///
/// Libraries of MPI raise the errors of non-blocking collectives on MPI_COMM_WORLD, whose handler
/// ends the job by default. Therefore rankmesh creates such an object around its calls that
/// complete non-blocking collectives, and around calls on communicators that it does not own.
///
/// If several threads may call MPI (MPI_THREAD_MULTIPLE), this class does nothing, because errors
/// of other threads must reach the handler of the program.
class ReturnedErrors {
 public:
  explicit ReturnedErrors(MPI_Comm comm);
  ~ReturnedErrors();
  ReturnedErrors(const ReturnedErrors&) = delete;
  ReturnedErrors& operator=(const ReturnedErrors&) = delete;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;  // null if nothing was replaced
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

/// Runs calls of MPI that return their errors even if the program has set another handler.
/// @param is_foreign       Whether the communicator belongs to the program.
/// @param raises_on_world  Whether MPI may raise the errors on MPI_COMM_WORLD.
template <class Action>
decltype(auto) returning_errors(MPI_Comm comm, bool is_foreign, bool raises_on_world,
                                Action&& action) {
  std::optional<ReturnedErrors> of_comm, of_world;
  if (is_foreign) of_comm.emplace(comm);
  if (raises_on_world) of_world.emplace(MPI_COMM_WORLD);
  return action();
}

/// Returns whether at most one thread of this process calls MPI at a time.
bool has_one_thread() noexcept;

/// Returns whether MPI returns the errors of a communicator to its caller.
bool returns_errors(MPI_Comm comm);

}  // namespace rankmesh::mpi

// SPDX-License-Identifier: BSD-3-Clause
// Runs a program: initialises MPI, reports exceptions, and ends the job.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>

#include "rankmesh/export.hpp"
#include "rankmesh/mpi/environment.hpp"

namespace rankmesh {

/// The options of run(): the parameters of its mpi::Environment.
struct RunOptions {
  /// The thread level that the program needs.
  mpi::ThreadLevel threads = mpi::ThreadLevel::funneled;
  /// The order in which NCCL launches operations.
  mpi::NcclLaunchOrder order = mpi::NcclLaunchOrder::unchanged;
  mpi::UncleanEnd end = mpi::UncleanEnd::abort_job;  ///< What happens if MPI cannot be finalised.
};

namespace detail {
RANKMESH_API int run_program(int& argc, char**& argv, const RunOptions& options,
                             const std::function<int(mpi::Environment&)>& program);
}  // namespace detail

/// Runs a function as the whole program, between MPI_Init and MPI_Finalize:
///
///     int main(int argc, char** argv) {
///       return rankmesh::run(argc, argv, [&] { ... });
///     }
///
/// If an exception leaves the function, this rank writes the text of the exception to stderr and
/// ends the job with MPI_Abort and status 1, because other ranks may be waiting for it. If several
/// ranks of a node fail at the same time, they write each distinct text once, together with the
/// numbers and coordinates of the ranks that failed with it. This takes less than a second and does
/// not depend on ranks that have not failed.
///
/// Collective over MPI_COMM_WORLD.
/// @param program  takes an mpi::Environment& or nothing. It returns an int, which is the status of
///                 the process, or nothing, which means status 0. It must close every mesh that it
///                 opens; see mpi::Environment.
/// @return the status of the process, for main. Exceptions that the function throws do not leave
/// run().
template <class Program>
  requires std::invocable<Program&> || std::invocable<Program&, mpi::Environment&>
int run(int& argc, char**& argv, Program&& program, const RunOptions& options = {}) {
  const auto call = [&](mpi::Environment& environment) -> decltype(auto) {
    if constexpr (std::invocable<Program&, mpi::Environment&>)
      return program(environment);
    else
      return program();
  };
  return detail::run_program(argc, argv, options, [&](mpi::Environment& environment) -> int {
    if constexpr (std::is_void_v<decltype(call(environment))>) {
      call(environment);
      return 0;
    } else {
      return call(environment);
    }
  });
}

}  // namespace rankmesh

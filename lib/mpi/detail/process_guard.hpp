// SPDX-License-Identifier: BSD-3-Clause
// The end of a process in which an Environment has initialised MPI.
#pragma once

#include <string>

#include "rankmesh/mpi/environment.hpp"

namespace rankmesh::mpi {

/// Guards the end of this process: exit() and exceptions that are not caught end the job.
/// Collective over MPI_COMM_WORLD.
void begin_guard(UncleanEnd end);
/// Returns true if an earlier Environment initialised MPI and was left by an exception. A new
/// Environment then takes its place. Local.
bool resume_guard(UncleanEnd end) noexcept;
/// Ends the guard together with its Environment: finalises MPI if that is possible, and ends the
/// job otherwise. If an exception leaves the Environment, the guard remains until the process ends,
/// so that the program can first handle the exception.
void end_guard(bool by_exception) noexcept;

/// Sets the status with which the job ends if MPI cannot be finalised.
void set_status_of_end(int status) noexcept;
/// Ends the guard and leaves the job to the launcher, without finalising MPI.
void abandon_guard() noexcept;

}  // namespace rankmesh::mpi

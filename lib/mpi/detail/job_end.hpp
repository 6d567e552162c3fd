// SPDX-License-Identifier: BSD-3-Clause
// Ends the whole job with a message.
#pragma once

#include <string>

namespace rankmesh::mpi {

/// Makes this process ready for end_job(). Collective over MPI_COMM_WORLD (one broadcast of 16
/// bytes). A second call does nothing.
void prepare_job_end();

/// Writes a message to stderr and ends the job with MPI_Abort on MPI_COMM_WORLD. Ranks that end at
/// the same time on one node write each distinct text once, together with the list of these ranks;
/// this takes less than a second and needs no other rank. Local.
/// @param program  Precedes the text.
/// @param text     If it is empty, nothing is written.
/// @param status   The status of the job; 1 if it is 0.
[[noreturn]] void end_job(const std::string& program, const std::string& text, int status) noexcept;

/// Flushes stdout, unless another thread uses it. Other streams are left alone: a thread may be
/// blocked in one of them for ever, for example in stdin.
void flush_stdout() noexcept;

/// Writes a message of this rank to stderr, without waiting for other ranks. Local.
void write_last_words(const std::string& program, const std::string& text) noexcept;

/// Sets a function that is called before this rank writes a message of this file, so that its peers
/// need not report its end. The function must not throw.
void on_last_words(void (*action)()) noexcept;

/// Calls MPI_Abort on MPI_COMM_WORLD, and ends the process if MPI_Abort returns. Ends the process
/// alone if the job goes on without it; see record_survivor().
[[noreturn]] void abort_job(int status) noexcept;

/// Records that this process has no place in the mesh that goes on: its end does not say how the
/// job ends.
void record_idle() noexcept;

/// Returns whether this process ends the job. If another thread does that, this function first
/// gives that thread the time to do so.
bool is_job_ending() noexcept;

/// Returns whether this is a child process that a rank has forked: it is not part of the job.
bool is_child_of_rank() noexcept;

/// Returns the number of ranks in the job, after prepare_job_end().
int ranks_of_job() noexcept;

}  // namespace rankmesh::mpi

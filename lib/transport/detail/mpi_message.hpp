// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members by MPI: send, recv and send_recv.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Carries out send, recv or send_recv; blocks. MPI needs few instructions for small messages, so
/// every instruction counts here.
/// @param largest  The largest number of elements in one count of MPI.
/// @throws UsageError if the message that arrived does not have the expected length.
void run_message(const Call& call, MPI_Comm comm, std::int64_t largest);

/// Starts send, recv or send_recv; does not block. The request of the receive comes first. Call
/// check_length() once it is complete.
void start_message(const Call& call, MPI_Comm comm, std::int64_t largest,
                   std::vector<MPI_Request>& requests);

/// Checks the length of a message that has arrived. MPI itself reports only
/// messages that are too long.
/// @throws UsageError if the message is too short.
void check_length(const Call& call, const MPI_Status& status);

}  // namespace rankmesh::detail

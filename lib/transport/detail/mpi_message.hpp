// Messages between two members by MPI: send, recv and send_recv.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Carries it to its end; blocks. MPI itself has a short way, so every instruction counts.
/// @param largest  elements that an int may count.
/// @throws UsageError where a message of another length came.
void run_message(const Call& call, MPI_Comm comm, std::int64_t largest);

/// Begins it. The receive's request comes first; once it is complete, ask check_length().
void start_message(const Call& call, MPI_Comm comm, std::int64_t largest,
                   std::vector<MPI_Request>& requests);

/// MPI lets a shorter message pass; a longer one is its own error. @throws UsageError.
void check_length(const Call& call, const MPI_Status& status);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Small messages that may never be received.
#pragma once

#include <memory>

#include "rankmesh/mpi/communicator.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::detail {

/// Sends a message as bytes, and does not wait for its receiver. MPI sends small messages eagerly.
/// If MPI has not sent the message when the call returns, MPI may read the copy until the process
/// ends. In this case the copy is leaked on purpose.
template <class Message>
void send_and_forget(const mpi::CommunicatorView& comm, int to, int tag, const Message& message) {
  auto copy = std::make_unique<Message>(message);
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Isend(copy.get(), static_cast<int>(sizeof message), MPI_BYTE, to, tag,
                       comm.native(), &request),
             "MPI_Isend");
  int is_sent = 0;
  const int code = MPI_Test(&request, &is_sent, MPI_STATUS_IGNORE);
  if (is_sent == 0) leak(copy);
  mpi::check(code, "MPI_Test");
  if (is_sent == 0) mpi::check(MPI_Request_free(&request), "MPI_Request_free");
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Small messages that may never be received, and whose receivers do not wait for them.
#pragma once

#include <memory>
#include <optional>

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

/// A message and its sender.
template <class Message>
struct Received {
  int from;
  Message message;
};

/// Receives a message if one has arrived; never waits. A message of another size belongs to the
/// program, and stays where it is. One of the same size may still belong to the program or to
/// another group, so each kind of message begins with a mark, which the caller compares.
template <class Message>
std::optional<Received<Message>> receive_if_arrived(const mpi::CommunicatorView& comm, int tag) {
  int there = 0;
  MPI_Status status;
  mpi::check(MPI_Iprobe(MPI_ANY_SOURCE, tag, comm.native(), &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  int size = 0;
  mpi::check(MPI_Get_count(&status, MPI_BYTE, &size), "MPI_Get_count");
  if (size != sizeof(Message)) return std::nullopt;
  Received<Message> received{status.MPI_SOURCE, {}};
  mpi::check(MPI_Recv(&received.message, size, MPI_BYTE, received.from, tag, comm.native(),
                      MPI_STATUS_IGNORE),
             "MPI_Recv");
  return received;
}

}  // namespace rankmesh::detail

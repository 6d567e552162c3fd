// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "detail/control_queue_state.hpp"
#include "mpi/detail/unfinished.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/mpi/error.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {

void ControlQueue::State::throw_no_message(const Deadline& deadline) const {
  const std::string does = what_does(writer.value());
  throw TimeoutError{fmt::format("message {} of the control queue of '{}' did not arrive within "
                                 "{} s: its writer is rank {}{}{}",
                                 messages, group->name(), deadline.seconds(), name(writer.value()),
                                 does.empty() ? "" : ", which ", does),
                     "check whether the writer has stopped or is slow",
                     {group->ranks().at(writer.value())}};
}

bool ControlQueue::State::has_arrived(Arrival& arrival) const {
  if (is_local) return ring->is_written(next_chunk);
  int flag = 0;
  mpi::check(MPI_Improbe(static_cast<int>(writer.value()), tag, group->native_mpi(), &flag,
                         &arrival.handle, &arrival.status),
             "MPI_Improbe");
  return flag != 0;
}

bool ControlQueue::State::take(Bytes& message, Arrival& arrival,
                               std::optional<Deadline::Duration> timeout) {
  if (is_local)
    take_from_ring(message, timeout);
  else if (!take_from_mpi(message, arrival, timeout))
    return false;
  count_message();
  return true;
}

bool ControlQueue::State::take_from_mpi(Bytes& message, Arrival& arrival,
                                        std::optional<Deadline::Duration> timeout) {
  int bytes = 0;
  mpi::check(MPI_Get_count(&arrival.status, MPI_BYTE, &bytes), "MPI_Get_count");
  Bytes incoming(static_cast<std::size_t>(bytes));
  MPI_Request request = MPI_REQUEST_NULL;
  mpi::check(MPI_Imrecv(incoming.data(), bytes, MPI_BYTE, &arrival.handle, &request), "MPI_Imrecv");
  try {
    wait(
        [&] {
          int done = 0;
          mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
          return done != 0;
        },
        timeout, [&](const Deadline& deadline) { throw_no_message(deadline); });
  } catch (const Error& error) {
    broken = error.message();
    leak(incoming);  // MPI may still write there
    mpi::record_abandoned(fmt::format("a message of the control queue of '{}'", group->name()));
    throw;
  }
  if (incoming.size() < sizeof id || std::memcmp(incoming.data(), &id, sizeof id) != 0)
    return false;
  incoming.erase(incoming.begin(), incoming.begin() + sizeof id);
  message = std::move(incoming);
  return true;
}

void ControlQueue::State::take_from_ring(Bytes& message,
                                         std::optional<Deadline::Duration> timeout) {
  message.resize(ring->message_bytes(next_chunk));
  const std::uint64_t chunks = ring->chunks_of(message.size());
  for (std::uint64_t k = 0; k < chunks; ++k) {
    try {
      wait([&] { return ring->is_written(next_chunk); }, timeout,
           [&](const Deadline& deadline) { throw_no_message(deadline); });
    } catch (const TimeoutError& error) {
      broken = error.message();  // the rest of the message may come later, at an unknown time
      throw;
    }
    ring->read(next_chunk++, message, k, reader);
  }
}

}  // namespace rankmesh::exchange

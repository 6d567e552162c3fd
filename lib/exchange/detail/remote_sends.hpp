// SPDX-License-Identifier: BSD-3-Clause
// Messages on their way from a control queue's writer to readers on other nodes.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "rankmesh/exchange/message.hpp"
#include "rankmesh/mpi/native.hpp"

namespace rankmesh::exchange::detail {

/// Sends copies of messages and keeps each copy until all readers have received it. If readers are
/// left at the end, the copies are leaked, since MPI may still read them.
class RemoteSends {
 public:
  RemoteSends() = default;
  ~RemoteSends();
  RemoteSends(const RemoteSends&) = delete;
  RemoteSends& operator=(const RemoteSends&) = delete;

  /// @param id       Precedes each message. If a communicator is freed, MPI may give its context to
  ///                 a later communicator, with the messages that no reader has received.
  /// @param readers  Ranks of the communicator.
  void open(MPI_Comm comm, int tag, std::uint64_t id, std::vector<std::int64_t> readers);
  [[nodiscard]] const std::vector<std::int64_t>& readers() const { return readers_; }

  void send(std::span<const std::byte> message);
  /// Frees the messages that all readers have received, and returns how many are left.
  std::int64_t collect();
  /// Returns how many messages the reader has not received yet.
  [[nodiscard]] std::uint64_t behind(std::size_t reader) const;

 private:
  struct Sending {
    Bytes message;
    std::vector<MPI_Request> requests;  // per reader
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  int tag_ = 0;
  std::uint64_t id_ = 0;
  std::vector<std::int64_t> readers_;
  std::deque<Sending> sending_;  // in the order of writing
  std::vector<int> done_;        // for MPI_Testsome
};

}  // namespace rankmesh::exchange::detail

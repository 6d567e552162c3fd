// SPDX-License-Identifier: BSD-3-Clause
// The messages between the nodes of a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rankmesh/mpi/communicator.hpp"
#include "transport/detail/call_descriptor.hpp"

namespace rankmesh::levels {

/// The beginning of the first message of a call between two members.
struct MessageOpening {
  std::uint64_t number;  ///< of the call in its group
  CallDescriptor call;
};

/// Thrown if the calls of two peers differ. The transport catches it and composes the message.
struct Difference {
  int member;
  MessageOpening other;
};

/// The peers of a carrier in one call: the members that carry the same parts on the other nodes.
/// The first message to each of them contains the descriptor of the call. If the data are small,
/// they follow the descriptor in this message. The receiver compares the descriptor with its own
/// before it takes any data.
class Peers {
 public:
  /// The most bytes that travel with the descriptor.
  static constexpr std::size_t inline_bytes = 4096;

  /// @param members  The peer on each node, as a rank of the communicator.
  Peers(const mpi::CommunicatorView& comm, const MessageOpening& own, std::vector<int> members)
      : comm_{comm.native()}, own_{own}, links_(members.size()), members_{std::move(members)} {}

 private:
  friend class PeerMessages;
  struct FirstMessage {
    MessageOpening opening;
    std::byte data[inline_bytes];
  };
  // The first messages, once they are posted.
  struct PeerLink {
    std::unique_ptr<FirstMessage> sent, received;
  };
  MPI_Comm comm_;
  MessageOpening own_;
  std::vector<PeerLink> links_;
  std::vector<int> members_;
};

/// The messages of one chunk of a call. Used by one thread at a time; nothing blocks.
class PeerMessages {
 public:
  PeerMessages(Peers& peers, int tag) : peers_{peers}, tag_{tag} {}

  /// Sends bytes to the peer on a node. They must stay until test() has returned true.
  void send(int node, const std::byte* data, std::size_t bytes);
  /// Receives bytes from the peer on a node, which sends the same number of bytes.
  void receive(int node, std::byte* data, std::size_t bytes);
  /// Returns whether all messages have been sent and received.
  /// @throws Difference
  bool test();
  [[nodiscard]] bool is_idle() const { return requests_.empty(); }
  /// Returns the members whose messages have not arrived.
  [[nodiscard]] std::vector<std::int64_t> awaited() const;

 private:
  // What happens when a request ends.
  struct Arrival {
    int node = -1;  // of a receive
    bool is_first = false;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  void post_send(int node, const void* data, std::size_t bytes);
  void post_receive(const Arrival& arrival, void* data, std::size_t bytes);
  void open(const Arrival& arrival);

  Peers& peers_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Arrival> arrivals_;  // one per request
};

}  // namespace rankmesh::levels

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
struct Opening {
  std::uint64_t number;  ///< of the call in its group
  CallDescriptor call;
};

/// The counterparts of a carrier in one call. The first message to each of them contains the
/// descriptor of the call. If the data are small, they follow the descriptor in this message. The
/// receiver compares the descriptor with its own before it takes any data.
class Counterparts {
 public:
  /// The most bytes that travel with the descriptor.
  static constexpr std::size_t inline_bytes = 4096;

  Counterparts(const mpi::CommunicatorView& comm, Opening own) : comm_{comm}, own_{own} {}
  /// @param members  The counterpart on each node, as a rank of the communicator.
  void set_members(std::vector<int> members) {
    links_ = std::vector<Link>(members.size());
    members_ = std::move(members);
  }

  /// Thrown if the calls differ. The transport catches it and composes the message.
  struct Difference {
    int member;
    Opening other;
  };

 private:
  friend class Messages;
  struct Envelope {
    Opening opening;
    std::byte data[inline_bytes];
  };
  struct Link {
    std::unique_ptr<Envelope> sent, received;
    bool has_sent = false, has_received = false;  // the first message
  };
  mpi::CommunicatorView comm_;
  Opening own_;
  std::vector<Link> links_;
  std::vector<int> members_;
};

/// The messages of one piece of a call. Used by one thread at a time; nothing blocks.
class Messages {
 public:
  Messages(Counterparts& counterparts, int tag) : counterparts_{counterparts}, tag_{tag} {}

  /// Sends bytes to the counterpart on a node. They must stay until test() has returned true.
  void send(int node, const std::byte* data, std::size_t bytes);
  /// Receives bytes from the counterpart on a node, which sends the same number of bytes.
  void receive(int node, std::byte* data, std::size_t bytes);
  /// Returns whether all messages have been sent and received.
  /// @throws Counterparts::Difference
  bool test();
  [[nodiscard]] bool is_idle() const { return requests_.empty(); }
  /// Returns the members whose messages have not arrived.
  [[nodiscard]] std::vector<std::int64_t> awaited() const;

 private:
  // What happens when a request ends.
  struct Arrival {
    int node = -1;  // of a receive
    bool is_opening = false;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
  };
  void receive_data(const Arrival& arrival);
  void open(const Arrival& arrival);

  Counterparts& counterparts_;
  int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<Arrival> arrivals_;  // one per request
};

}  // namespace rankmesh::levels

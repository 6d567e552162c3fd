// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/user_reductions.hpp"

namespace rankmesh {

/// Adds the operations between two members. The sender and the receiver must pass the same number
/// of elements, the same element type and the same tag. Tags are numbers from 0 to 16383. Messages
/// with the same tag between the same two members arrive in the order in which they were sent.
class PointToPoint : public UserReductions {
 public:
  /// Sends values to another member. Returns once the caller may change the values, even if the
  /// other member has not received them yet.
  template <Memory In>
  void send(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send, In>(calls::send(values, resolved(to), tag, stream));
  }
  /// Starts send(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In>
  [[nodiscard]] auto send_async(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<In>(values),
                     [&](auto& v) { return calls::send(v, resolved(to), tag, stream); });
  }

  /// Receives values from another member. On host memory, blocks until the values have arrived.
  /// @param values  A buffer with as many elements as the other member sends.
  template <WritableMemory Out>
  void recv(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::recv, Out>(calls::recv(values, resolved(from), tag, stream));
  }
  /// Starts recv(); returns a Work. The memory must stay valid until it is complete.
  template <WritableMemory Out>
  [[nodiscard]] auto recv_async(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<Out>(values),
                     [&](auto& v) { return calls::recv(v, resolved(from), tag, stream); });
  }

  /// Returns the number of bytes of the next message with this tag from a member, if the message
  /// has been sent and this member has not begun to receive it. In this case recv() would not wait
  /// for the sender. Otherwise returns nothing. Host memory only. Local; never blocks, and makes
  /// progress. While a program probes in a loop, rankmesh cannot find deadlocks or missing ranks,
  /// because the rank does not wait in rankmesh.
  [[nodiscard]] std::optional<std::int64_t> probe(Peer from, int tag = 0) {
    return arrived(resolved(from), tag);
  }
  /// Receives values if a message has arrived; see probe(). Returns whether it has received them.
  template <WritableMemory Out>
    requires(!DeviceMemory<Out> && detail::is_borrowed<Out>)
  [[nodiscard]] bool try_recv(Out&& values, Peer from, int tag = 0) {
    if (!probe(from, tag)) return false;
    recv(values, from, tag);
    return true;
  }

  /// Sends `in` and receives `out` at the same time. If all members of a ring call send_recv(),
  /// they cannot deadlock. `in` and `out` may have different numbers of elements. A member can send
  /// to itself and receive from itself.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void send_recv(In&& in, Out&& out, Peer to, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send_recv, In, Out>(
        calls::send_recv(in, out, resolved(to), resolved(from), tag, stream));
  }
  /// Starts send_recv(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto send_recv_async(In&& in, Out&& out, Peer to, Peer from, int tag = 0,
                                     StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::send_recv(i, o, resolved(to), resolved(from), tag, stream);
    });
  }

 protected:
  using UserReductions::UserReductions;
  ~PointToPoint() = default;
};

}  // namespace rankmesh

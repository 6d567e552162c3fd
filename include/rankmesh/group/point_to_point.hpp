// SPDX-License-Identifier: BSD-3-Clause
// Messages between two members.
#pragma once

#include <utility>

#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/user_reductions.hpp"

namespace rankmesh {

/// Adds the operations between two members. Sender and receiver pass the same number of elements of
/// the same type, and the same tag from 0 to 16383. Messages between the same two members with the
/// same tag arrive in order.
class PointToPoint : public UserReductions {
 public:
  /// Sends values to another member. Returns when the caller may change the values, which can be
  /// before the other member has received them.
  template <Memory In>
  void send(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send, In>(calls::send(values, resolved(to), tag, stream));
  }
  template <Memory In>
  [[nodiscard]] auto send_async(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<In>(values),
                     [&](auto& v) { return calls::send(v, resolved(to), tag, stream); });
  }

  /// Receives values from another member; blocks until they have arrived.
  /// @param values  A buffer with as many elements as the other member sends.
  template <WritableMemory Out>
  void recv(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::recv, Out>(calls::recv(values, resolved(from), tag, stream));
  }
  template <WritableMemory Out>
  [[nodiscard]] auto recv_async(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<Out>(values),
                     [&](auto& v) { return calls::recv(v, resolved(from), tag, stream); });
  }

  /// Sends and receives at the same time, so members that call it in a ring cannot deadlock. `in`
  /// and `out` may have different numbers of elements. Both peers can be the caller itself.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void send_recv(In&& in, Peer to, Out&& out, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send_recv, In, Out>(
        calls::send_recv(in, resolved(to), out, resolved(from), tag, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto send_recv_async(In&& in, Peer to, Out&& out, Peer from, int tag = 0,
                                     StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::send_recv(i, resolved(to), o, resolved(from), tag, stream);
    });
  }

 protected:
  using UserReductions::UserReductions;
  ~PointToPoint() = default;
};

}  // namespace rankmesh

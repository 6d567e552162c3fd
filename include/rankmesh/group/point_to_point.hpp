// Messages between two members.
#pragma once

#include <utility>

#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/user_reductions.hpp"

namespace rankmesh {

/// The point-to-point operations of a GroupCoordinator. Sender and receiver call with the same
/// number of elements and the same tag, 0 to 16383.
class PointToPoint : public UserReductions {
 public:
  /// Sends to another member. Returns when the values may be changed, which may be before they are
  /// received.
  template <Memory In>
  void send(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send, In>(calls::send(values, resolved(to), tag, stream));
  }
  template <Memory In>
  [[nodiscard]] auto send_async(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<In>(values),
                     [&](auto& v) { return calls::send(v, resolved(to), tag, stream); });
  }

  /// Receives from another member exactly as many elements as it sends.
  template <WritableMemory Out>
  void recv(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::recv, Out>(calls::recv(values, resolved(from), tag, stream));
  }
  template <WritableMemory Out>
  [[nodiscard]] auto recv_async(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<Out>(values),
                     [&](auto& v) { return calls::recv(v, resolved(from), tag, stream); });
  }

  /// Sends and receives at once, which cannot deadlock against the peers' send_recv. The two sizes
  /// may differ.
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

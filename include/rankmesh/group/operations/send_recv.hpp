// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives messages at the same time.
#pragma once

#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"

namespace rankmesh {

/// send_recv() sends `in` and receives `out` at the same time; see send(). If all members of a ring
/// call it, they cannot deadlock. `in` and `out` may have different numbers of elements. A member
/// can send to itself and receive from itself.
template <bool forms_only = false>
class SendRecv : public detail::OperationForms<Operation::send_recv> {
 public:
  /// Sends and receives.
  template <Memory In, OutputOf<In> Out>
  void send_recv(In&& in, Out&& out, Peer to, Peer from, OrStream<int> tag = 0,
                 StreamRef stream = {}) {
    run(in, out, ends(to, from, tag, stream));
  }
  /// Starts send_recv(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In, OutputOf<In> Out>
  [[nodiscard]] WorkOn<Out> send_recv_async(In&& in, Out&& out, Peer to, Peer from,
                                            OrStream<int> tag = 0, StreamRef stream = {}) {
    return start(std::forward<In>(in), std::forward<Out>(out), ends(to, from, tag, stream));
  }

  RANKMESH_REFUSE_OTHERS(SendRecv, send_recv)
  RANKMESH_REFUSE_BRACES(SendRecv, send_recv)
  RANKMESH_REFUSE_BRACES(SendRecv, send_recv_async)

 private:
  Call ends(Peer to, Peer from, OrStream<int> tag, StreamRef stream) {
    return {.tag = tag.value(),
            .destination = issuer().resolved(to),
            .source = issuer().resolved(from),
            .stream = tag.stream_or(stream)};
  }
};

}  // namespace rankmesh

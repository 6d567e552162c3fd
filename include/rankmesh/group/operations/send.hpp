// SPDX-License-Identifier: BSD-3-Clause
// Sends a message to another member.
#pragma once

#include <utility>

#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"

namespace rankmesh {

/// send() sends values to another member. It returns once the caller may change the values, even if
/// the other member has not received them yet. The sender and the receiver must pass the same
/// number of elements, the same element type and the same tag, a number from 0 to 16383. Messages
/// with the same tag between the same two members arrive in the order in which they were sent.
template <bool forms_only = false>
class Send : public detail::OperationForms<Operation::send> {
 public:
  /// Sends the values of a buffer.
  template <Memory In>
  void send(In&& values, Peer to, OrStream<int> tag = 0, StreamRef stream = {}) {
    run(values, {.tag = tag.value(),
                 .destination = issuer().resolved(to),
                 .stream = tag.stream_or(stream)});
  }
  /// Sends one value.
  template <Value T>
  void send(const T& value, Peer to, int tag = 0) {
    send(detail::one(value), to, tag);
  }
  /// Starts send(); returns a Work. The memory must stay valid until it is complete.
  template <Memory In>
  [[nodiscard]] WorkOn<In> send_async(In&& values, Peer to, OrStream<int> tag = 0,
                                      StreamRef stream = {}) {
    return start(std::forward<In>(values), {.tag = tag.value(),
                                            .destination = issuer().resolved(to),
                                            .stream = tag.stream_or(stream)});
  }
  /// Starts to send one value, which must stay valid until the operation is complete.
  template <Value T>
  [[nodiscard]] Work send_async(T& value, Peer to, int tag = 0) {
    return send_async(detail::one(value), to, tag);
  }

  RANKMESH_REFUSE_OTHERS(Send, send)
};

}  // namespace rankmesh

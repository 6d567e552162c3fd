// SPDX-License-Identifier: BSD-3-Clause
// Receives a message from another member.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "rankmesh/group/detail/no_group.hpp"
#include "rankmesh/group/detail/operation_forms.hpp"
#include "rankmesh/group/or_stream.hpp"

namespace rankmesh {

/// recv() receives the values that another member sends; see send(). On host memory, it blocks
/// until the values have arrived. try_recv() receives only what has arrived, and probe() asks for
/// it.
template <bool forms_only = false>
class Recv : public detail::OperationForms<Operation::recv> {
 public:
  /// Receives the values in a buffer with as many elements as the other member sends.
  template <WritableMemory Out>
    requires detail::is_borrowed<Out>
  void recv(Out&& values, Peer from, OrStream<int> tag = 0, StreamRef stream = {}) {
    run(values,
        {.tag = tag.value(), .source = issuer().resolved(from), .stream = tag.stream_or(stream)});
  }
  /// Receives one value.
  template <Variable T>
  void recv(T& value, Peer from, int tag = 0) {
    recv(detail::one(value), from, tag);
  }
  /// Receives one value and returns it: `const auto loss = pp.recv<float>(prev)`.
  template <Value T>
    requires std::default_initializable<T>
  [[nodiscard]] T recv(Peer from, int tag = 0) {
    T value{};
    recv(value, from, tag);
    return value;
  }
  /// Starts recv(); returns a Work. The memory must stay valid until it is complete.
  template <WritableMemory Out>
  [[nodiscard]] WorkOn<Out> recv_async(Out&& values, Peer from, OrStream<int> tag = 0,
                                       StreamRef stream = {}) {
    return start(
        std::forward<Out>(values),
        {.tag = tag.value(), .source = issuer().resolved(from), .stream = tag.stream_or(stream)});
  }
  /// Starts to receive one value, which must stay valid until the operation is complete.
  template <Variable T>
  [[nodiscard]] Work recv_async(T& value, Peer from, int tag = 0) {
    return recv_async(detail::one(value), from, tag);
  }

  /// Returns the number of bytes of the next message with this tag from a member, if the message
  /// has been sent and this member has not begun to receive it. In this case recv() would not wait
  /// for the sender. Otherwise returns nothing. Host memory only. Local; never blocks, and makes
  /// progress. While a program probes in a loop, rankmesh cannot find deadlocks or missing ranks,
  /// because the rank does not wait in rankmesh.
  [[nodiscard]] std::optional<std::int64_t> probe(Peer from, int tag = 0) {
    return issuer().arrived(issuer().resolved(from), tag);
  }
  /// Receives values if a message has arrived; see probe(). Returns whether it has received them.
  template <WritableMemory Out>
    requires(!DeviceMemory<Out> && detail::is_borrowed<Out>)
  [[nodiscard]] bool try_recv(Out&& values, Peer from, int tag = 0) {
    if (!probe(from, tag)) return false;
    recv(values, from, tag);
    return true;
  }
  /// Does the same for one value.
  template <Variable T>
  [[nodiscard]] bool try_recv(T& value, Peer from, int tag = 0) {
    return try_recv(detail::one(value), from, tag);
  }

  RANKMESH_REFUSE_OTHERS(Recv, recv)
  RANKMESH_REFUSE_OTHER(Recv, try_recv)
  /// Refuses, at compile time, to receive and return a T that is not a single value.
  template <class T>
    requires(!Value<T>)
  detail::AnyResult recv(Peer, int = 0) {
    static_assert(detail::never<T>,
                  "only single values are returned: write recv(values, from) for memory that has "
                  "the size of the message, or rankmesh::exchange::recv_object<T>(group, from)");
    return {};
  }
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Sends values of any type that cereal can serialise.
//
// Programs that include this header need cereal (libcereal-dev); rankmesh.hpp does not include it.
// This header supports strings, vectors, arrays, maps, optionals, pairs and tuples. For other types
// of the standard library, also include <cereal/types/...>.
#pragma once

#include <optional>
#include <vector>

#include "rankmesh/base/detail/reasons.hpp"
#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/exchange/object_archive.hpp"
#include "rankmesh/wait/mpi_memory.hpp"

namespace rankmesh::exchange {

namespace detail {
/// Holds the bytes of an object, or the reason why the object could not be serialised.
struct Serialised {
  Bytes bytes;
  std::optional<Failure> failure;
  [[nodiscard]] const Failure* failed() const { return failure ? &*failure : nullptr; }
};
template <class T>
Serialised serialised(const T& object) {
  try {
    return {to_bytes(object), std::nullopt};
  } catch (...) {
    return {{}, Failure{rankmesh::detail::current_reasons().message}};
  }
}
template <class T>
std::vector<T> objects_of(const std::vector<Bytes>& messages) {
  std::vector<T> objects;
  for (const Bytes& bytes : messages) objects.push_back(from_bytes<T>(bytes));
  return objects;
}
}  // namespace detail

/// Broadcasts the root's object to all members. Collective over the group; blocks.
///
/// Cost: one broadcast of 1 KiB. An object of more than 1,000 bytes needs a second broadcast for
/// the remaining bytes.
/// @throws DataError if the received bytes are not a T. If the root cannot serialise its object,
/// all members throw DataError.
template <class T>
void broadcast_object(GroupCoordinator& group, T& object, RankInGroup root) {
  const bool at_root = group.rank_in_group() == root;
  auto mine = at_root ? detail::serialised(object) : detail::Serialised{};
  broadcast_message(group, mine.bytes, root, mine.failed());
  if (!at_root) from_bytes(mine.bytes, object);
}

/// Sends an object to another member. Blocks until the object may be changed.
///
/// Cost: one message of 1 KiB. An object of more than 1,000 bytes needs a second message for the
/// remaining bytes.
/// @param tag  The tag has the same meaning as in GroupCoordinator::send. Calls of
///             GroupCoordinator::send for the same peer must use a different tag.
/// @throws DataError on both members if the object cannot be serialised.
template <class T>
void send_object(GroupCoordinator& group, const T& object, Peer to, int tag = 0) {
  auto mine = detail::serialised(object);
  run_or_leak([&] { send_message(group, mine.bytes, to, tag, mine.failed()); }, mine);
  if (mine.failure) throw DataError{"an object could not be serialised: " + mine.failure->text, {}};
}

/// Receives an object from another member; blocks.
/// @throws DataError if the received bytes are not a T, or if the sender cannot serialise its
/// object.
template <class T>
[[nodiscard]] T recv_object(GroupCoordinator& group, Peer from, int tag = 0) {
  return from_bytes<T>(recv_message(group, from, tag));
}

/// Receives an object from another member if it has arrived; otherwise returns nothing. See
/// try_recv_message().
/// @throws DataError under the same conditions as recv_object().
template <class T>
[[nodiscard]] std::optional<T> try_recv_object(GroupCoordinator& group, Peer from, int tag = 0) {
  const auto message = try_recv_message(group, from, tag);
  if (!message) return std::nullopt;
  return from_bytes<T>(*message);
}

/// Gathers the objects of all members at the root, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, and one gather_v of the objects.
/// @return At the root, the objects of all members; on other members, an empty vector.
/// @throws DataError if the received bytes are not a T. If any member cannot serialise its object,
/// all members throw DataError.
template <class T>
[[nodiscard]] std::vector<T> gather_objects(GroupCoordinator& group, const T& object,
                                            RankInGroup root) {
  auto mine = detail::serialised(object);
  std::vector<Bytes> messages;
  run_or_leak([&] { messages = gather_messages(group, mine.bytes, root, mine.failed()); }, mine);
  return detail::objects_of<T>(messages);
}

/// Gathers the objects of all members on all members, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, and one all_gather_v of the objects.
/// @throws DataError under the same conditions as gather_objects().
template <class T>
[[nodiscard]] std::vector<T> all_gather_objects(GroupCoordinator& group, const T& object) {
  auto mine = detail::serialised(object);
  std::vector<Bytes> messages;
  run_or_leak([&] { messages = all_gather_messages(group, mine.bytes, mine.failed()); }, mine);
  return detail::objects_of<T>(messages);
}

/// Writes an object to a control queue.
/// @throws all exceptions that ControlQueue::write() and the object's save function throw. If the
/// save function throws, nothing is written.
template <class T>
void write_object(ControlQueue& queue, const T& object,
                  std::optional<Deadline::Duration> timeout = {}) {
  queue.write(to_bytes(object), timeout);
}
/// Reads the next message of a control queue as an object.
/// @throws all exceptions that ControlQueue::read() throws; DataError if the message is not a T.
template <class T>
[[nodiscard]] T read_object(ControlQueue& queue, std::optional<Deadline::Duration> timeout = {}) {
  return from_bytes<T>(queue.read(timeout));
}

}  // namespace rankmesh::exchange

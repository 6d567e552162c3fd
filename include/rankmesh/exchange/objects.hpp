// Values of any type that cereal can serialise, between ranks.
//
// Not part of rankmesh.hpp: programs that include it need cereal (libcereal-dev). For the types of
// the standard library include <cereal/types/...>; strings, vectors, arrays, maps, optionals, pairs
// and tuples are included here.
#pragma once

#include <exception>
#include <optional>
#include <vector>

#include "rankmesh/exchange/control_queue.hpp"
#include "rankmesh/exchange/message.hpp"
#include "rankmesh/exchange/object_archive.hpp"

namespace rankmesh::exchange {

namespace detail {
/// The object's bytes, or why there are none.
struct Serialised {
  Bytes bytes;
  std::optional<Failure> failure;
  [[nodiscard]] const Failure* failed() const { return failure ? &*failure : nullptr; }
};
template <class T>
Serialised serialised(const T& object) {
  try {
    return {to_bytes(object), std::nullopt};
  } catch (const std::exception& error) {
    return {{}, Failure{error.what()}};
  }
}
}  // namespace detail

/// The root's object, everywhere. Collective over the group; blocks; host memory.
/// Cost: one broadcast of 1 KiB; for objects of more than 1,000 bytes a second one of the rest.
/// @throws DataError where the bytes that came are no T, and on every member where the root could
/// not
///         serialise its object: nobody waits for the other.
template <class T>
void broadcast_object(GroupCoordinator& group, T& object, RankInGroup root) {
  const bool at_root = group.rank_in_group() == root;
  auto mine = at_root ? detail::serialised(object) : detail::Serialised{};
  broadcast_message(group, mine.bytes, root, mine.failed());
  if (!at_root) from_bytes(mine.bytes, object);
}

/// To another member. Returns when the object may be changed.
/// Cost: one message of 1 KiB; a second one with the rest where the object has more than 1,000
/// bytes.
/// @param tag  as of GroupCoordinator::send; plain operations with the same peer need another.
/// @throws DataError, at both ends, where the object could not be serialised.
template <class T>
void send_object(GroupCoordinator& group, const T& object, Peer to, int tag = 0) {
  const auto mine = detail::serialised(object);
  send_message(group, mine.bytes, to, tag, mine.failed());
  if (mine.failure) throw DataError{"an object could not be serialised: " + mine.failure->text, {}};
}

/// From another member, who sends a T. @throws DataError where the bytes that came are none.
template <class T>
[[nodiscard]] T recv_object(GroupCoordinator& group, Peer from, int tag = 0) {
  return from_bytes<T>(recv_message(group, from, tag));
}

/// Every member's object, at the root, in group order; nothing elsewhere. Collective over the
/// group; blocks. Cost: an all_gather of 16 bytes per member, and one gather_v of the objects.
/// @throws DataError as above, on every member where one of them could not serialise.
template <class T>
[[nodiscard]] std::vector<T> gather_objects(GroupCoordinator& group, const T& object,
                                            RankInGroup root) {
  const auto mine = detail::serialised(object);
  std::vector<T> objects;
  for (const Bytes& bytes : gather_messages(group, mine.bytes, root, mine.failed()))
    objects.push_back(from_bytes<T>(bytes));
  return objects;
}

/// The same on every member. Cost: an all_gather of 16 bytes per member, and one all_gather_v of
/// the objects.
template <class T>
[[nodiscard]] std::vector<T> all_gather_objects(GroupCoordinator& group, const T& object) {
  const auto mine = detail::serialised(object);
  std::vector<T> objects;
  for (const Bytes& bytes : all_gather_messages(group, mine.bytes, mine.failed()))
    objects.push_back(from_bytes<T>(bytes));
  return objects;
}

/// An object as a message of a control queue. @throws as ControlQueue::write; whatever its save
/// function throws, and nothing is written.
template <class T>
void write_object(ControlQueue& queue, const T& object,
                  std::optional<Deadline::Duration> timeout = {}) {
  queue.write(to_bytes(object), timeout);
}
/// The next message as an object. @throws as ControlQueue::read; DataError where it is no T.
template <class T>
[[nodiscard]] T read_object(ControlQueue& queue, std::optional<Deadline::Duration> timeout = {}) {
  return from_bytes<T>(queue.read(timeout));
}

}  // namespace rankmesh::exchange

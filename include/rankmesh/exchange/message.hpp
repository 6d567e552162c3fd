// Bytes of any length between ranks: the receiver need not know how many come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rankmesh/base/error.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

using Bytes = std::vector<std::byte>;

/// Bytes of the first part of a message: a header of 24 bytes (a mark, the length, what it is) and
/// the first bytes of the message. What is longer follows as a second part.
inline constexpr std::size_t first_part = 1024;
/// A message that fits the first part.
inline constexpr std::size_t short_message = first_part - 24;

/// What a sender puts in place of a message that it could not make: every receiver throws a
/// DataError with this text.
struct Failure {
  std::string text;
};

/// The root's message, everywhere. Collective over the group; blocks. Host memory alone.
/// Cost: one broadcast of 1 KiB; for messages of more than 1,000 bytes a second one of the rest.
/// @param limit  receivers refuse longer messages before they allocate anything.
/// @throws DataError where the bytes that come are no message.
RANKMESH_API void broadcast_message(GroupCoordinator& group, Bytes& message, RankInGroup root,
                                    const Failure* failure = nullptr,
                                    std::uint64_t limit = std::uint64_t{1} << 40);
/// To one member; the tag is the caller's. Cost: one message of 1 KiB, a second one with the rest.
RANKMESH_API void send_message(GroupCoordinator& group, std::span<const std::byte> message, Peer to,
                               int tag = 0, const Failure* failure = nullptr);
/// From one member. @throws DataError as above.
RANKMESH_API Bytes recv_message(GroupCoordinator& group, Peer from, int tag = 0,
                                std::uint64_t limit = std::uint64_t{1} << 40);
/// Every member's message at the root, in group order; nothing elsewhere. Collective over the
/// group; blocks. Cost: an all_gather of 16 bytes per member, then one gather_v of the messages.
RANKMESH_API std::vector<Bytes> gather_messages(GroupCoordinator& group,
                                                std::span<const std::byte> message,
                                                RankInGroup root, const Failure* failure = nullptr);
/// The same everywhere. Cost: an all_gather of 16 bytes per member, then one all_gather_v of the
/// messages.
RANKMESH_API std::vector<Bytes> all_gather_messages(GroupCoordinator& group,
                                                    std::span<const std::byte> message,
                                                    const Failure* failure = nullptr);

}  // namespace rankmesh::exchange

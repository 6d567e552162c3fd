// SPDX-License-Identifier: BSD-3-Clause
// Messages of any length: the receiver need not know the length.
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

/// The size of the first part of a message. This part holds a header of 24 bytes (a mark, the
/// length, the kind) and the first bytes of the message. A longer message has a second part, which
/// holds the remaining bytes.
inline constexpr std::size_t first_part = 1024;
/// The length of the longest message without a second part.
inline constexpr std::size_t short_message = first_part - 24;

/// A sender that could not create its message sends a Failure instead. Every receiver then throws a
/// DataError with the text, so that no receiver waits for ever.
struct Failure {
  std::string text;
};

/// Broadcasts the root's message to all members. Collective over the group; blocks.
///
/// Cost: one broadcast of 1 KiB. A message of more than 1,000 bytes costs a second broadcast, of
/// the remaining bytes.
/// @param limit  The largest length in bytes. If the message is longer, receivers throw before they
///               allocate memory for it.
/// @throws DataError  The received bytes are not a message, or the root sent a Failure.
RANKMESH_API void broadcast_message(GroupCoordinator& group, Bytes& message, RankInGroup root,
                                    const Failure* failure = nullptr,
                                    std::uint64_t limit = std::uint64_t{1} << 40);
/// Sends a message to one member; blocks. Cost: one message of 1 KiB, and for longer messages a
/// second one with the remaining bytes.
RANKMESH_API void send_message(GroupCoordinator& group, std::span<const std::byte> message, Peer to,
                               int tag = 0, const Failure* failure = nullptr);
/// Receives a message from one member; blocks. @throws DataError  The conditions are the same as
/// for broadcast_message().
RANKMESH_API Bytes recv_message(GroupCoordinator& group, Peer from, int tag = 0,
                                std::uint64_t limit = std::uint64_t{1} << 40);
/// Gathers the messages of all members at the root, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, then one gather_v of the messages.
/// @return The messages at the root; an empty vector on other members.
/// @throws DataError  A member passed a Failure. All members throw it.
RANKMESH_API std::vector<Bytes> gather_messages(GroupCoordinator& group,
                                                std::span<const std::byte> message,
                                                RankInGroup root, const Failure* failure = nullptr);
/// Gathers the messages of all members on all members, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, then one all_gather_v of the messages.
/// @throws DataError  A member passed a Failure. All members throw it.
RANKMESH_API std::vector<Bytes> all_gather_messages(GroupCoordinator& group,
                                                    std::span<const std::byte> message,
                                                    const Failure* failure = nullptr);

}  // namespace rankmesh::exchange

// SPDX-License-Identifier: BSD-3-Clause
// Messages of any length. The receiver need not know the length in advance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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
/// The largest length of a message without a second part.
inline constexpr std::size_t short_message = first_part - 24;

/// Replaces a message that the sender could not create. Every receiver of a Failure throws a
/// DataError with the text. Without a Failure, the receivers would wait for ever.
struct Failure {
  std::string text;  ///< The reason, which the receivers report.
};

/// Broadcasts the root's message to all members. Collective over the group; blocks.
///
/// Cost: one broadcast of 1 KiB. A message of more than 1,000 bytes needs a second broadcast for
/// the remaining bytes.
/// @param message  Of the root; set on the other members. If a wait of the root fails, it is empty
///                 there, because MPI may still use the memory.
/// @param limit  The largest length in bytes that receivers accept. If the message is longer,
///               receivers throw before they allocate memory for the message. It must be the same
///               on all members.
/// @throws DataError if the received bytes are not a message, if the message is longer than
/// `limit`, or if the root sent a Failure.
RANKMESH_API void broadcast_message(GroupCoordinator& group, Bytes& message, RankInGroup root,
                                    const Failure* failure = nullptr,
                                    std::uint64_t limit = std::uint64_t{1} << 40);
/// Sends a message to one member; blocks. Cost: one MPI message of 1 KiB. A message of more than
/// 1,000 bytes needs a second MPI message for the remaining bytes.
RANKMESH_API void send_message(GroupCoordinator& group, std::span<const std::byte> message, Peer to,
                               int tag = 0, const Failure* failure = nullptr);
/// Receives a message from one member; blocks.
/// @param limit  See broadcast_message(). If a message of more than 1,000 bytes is longer, its
///               second part is not received, because it would need the memory. The next receive of
///               this tag from this member gets it, so use another tag afterwards.
/// @throws DataError under the same conditions as broadcast_message().
RANKMESH_API Bytes recv_message(GroupCoordinator& group, Peer from, int tag = 0,
                                std::uint64_t limit = std::uint64_t{1} << 40);
/// Receives a message from one member if it has arrived; otherwise returns nothing. Does not wait
/// for a message that has not arrived. If the message has more than 1,000 bytes, waits for its
/// second part.
/// @throws DataError under the same conditions as broadcast_message().
[[nodiscard]] RANKMESH_API std::optional<Bytes> try_recv_message(
    GroupCoordinator& group, Peer from, int tag = 0, std::uint64_t limit = std::uint64_t{1} << 40);
/// Gathers the messages of all members at the root, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, then one gather_v of the messages.
/// @return At the root, the messages of all members; on other members, an empty vector.
/// @throws DataError on all members if a member passed a Failure.
RANKMESH_API std::vector<Bytes> gather_messages(GroupCoordinator& group,
                                                std::span<const std::byte> message,
                                                RankInGroup root, const Failure* failure = nullptr);
/// Gathers the messages of all members on all members, in group order. Collective over the group;
/// blocks. Cost: an all_gather of 16 bytes per member, then one all_gather_v of the messages.
/// @throws DataError on all members if a member passed a Failure.
RANKMESH_API std::vector<Bytes> all_gather_messages(GroupCoordinator& group,
                                                    std::span<const std::byte> message,
                                                    const Failure* failure = nullptr);

}  // namespace rankmesh::exchange

// SPDX-License-Identifier: BSD-3-Clause
// The messages of a redistribution in device memory, in rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "message_stream.hpp"

namespace rankmesh::exchange::detail {

/// The sends and receives of a rank in one round at most.
inline constexpr std::int64_t most_operations_of_round = 256;
/// A part of a stream with this many bytes has messages of its own, so that it moves without a copy
/// if it is contiguous. Smaller parts share messages.
inline constexpr std::int64_t least_own_message = 64 << 10;

/// One message of a round.
struct DeviceMessage {
  std::size_t stream = 0;  ///< Its position in the list of streams.
  std::int64_t bytes = 0;  ///< Its size.
  std::int64_t place = 0;  ///< Where it lies in the memory for messages if it is packed.
};

/// The messages that NCCL moves together.
struct DeviceRound {
  std::vector<DeviceMessage> sends, receives;
};

/// All rounds of a rank. Each stream moves from its beginning to its end, so a stream and the sizes
/// of its messages say which elements a message has.
struct DeviceRounds {
  std::vector<MessageStream> sent, received;
  std::vector<DeviceRound> rounds;
  std::int64_t sent_memory = 0;      ///< The bytes of the largest round that are sent.
  std::int64_t received_memory = 0;  ///< The bytes of the largest round that are received.
};

/// Divides the streams of a rank into rounds. Sender and receiver of a message have it in the round
/// of the same number among all rounds of the plan, although neither of them knows the messages of
/// other ranks: a number consists of the step, of the distance between the two ranks in the group,
/// divided by the number of distances in a round, and of the number of the round among those of
/// these distances. Each rank goes through its rounds in the order of these numbers and leaves out
/// those in which it has no messages, so no two ranks can wait for each other.
/// @param sent, received  In the order of ordered_streams().
/// @param memory  The most bytes of the messages of one round, half of them for each direction.
[[nodiscard]] DeviceRounds device_rounds(const std::vector<MessageStream>& sent,
                                         const std::vector<MessageStream>& received,
                                         RankInGroup self, std::int64_t ranks, std::int64_t memory);

}  // namespace rankmesh::exchange::detail

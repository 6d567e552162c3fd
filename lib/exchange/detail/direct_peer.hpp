// SPDX-License-Identifier: BSD-3-Clause
// Streams between two ranks of a node that can read each other's memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "local_array.hpp"
#include "message_stream.hpp"
#include "rankmesh/base/index.hpp"

namespace rankmesh::exchange::detail {

/// What two ranks tell each other about a stream.
struct DirectNotice {
  enum Kind : std::uint32_t { may_read, may_read_packed, has_read };
  std::uint32_t kind = may_read;
  std::uint32_t step = 0;
  std::uint64_t address = 0;   ///< of the addresses of the sender's memory, or of the packed piece
  std::uint64_t strides = 0;   ///< the address of the strides there; 0 if there are no gaps
  std::uint64_t bytes = 0;     ///< of the packed piece
  std::uint64_t transfer = 0;  ///< the address of PublishedMemory::transfer
  std::uint64_t number = 0;    ///< of the transfer
};

/// What other ranks of the node read to find this rank's memory.
struct PublishedMemory {
  /// The number of the transfer that is in flight, from 1. It becomes 0 when this rank gives the
  /// transfer up: then its memory may change, and what others have read of it is without meaning.
  std::atomic<std::uint64_t> transfer{0};
  /// The strides of all tensors, for each step in which some of them have gaps. Each tensor has
  /// as many numbers as the one with the most axes.
  std::array<std::vector<std::int64_t>, 2> strides{};
};

/// A rank of this node whose memory this rank reads, and the other way round. The arrays are
/// indexed by TransferStep; a stream without parts does not exist.
struct DirectPeer {
  RankInGroup member{};
  std::int32_t local_rank = 0;
  std::array<MessageStream, 2> sent{}, received{};
  /// Whether the runs of `sent` are so short that this rank packs them.
  std::array<bool, 2> has_short_runs{};
  /// Memory for the two pieces of a packed stream that are on the way.
  std::array<std::unique_ptr<std::byte[]>, 2> packed{};
  /// Where some of the tensors lie in the memory of the peer in the present transfer.
  std::array<std::vector<std::byte*>, 2> addresses{};
  /// The strides that the peer has published last, and the gaps of its tensors.
  std::array<std::vector<std::int64_t>, 2> strides{};
  std::array<std::vector<ArrayGaps>, 2> gaps{};
};

struct RedistributionState;

/// Moves the streams between ranks that read each other's memory out of the lists `sent` and
/// `received`. Both ranks of a pair decide alike: from the plan, the options, and facts of the
/// node.
[[nodiscard]] std::vector<DirectPeer> take_direct_streams(RedistributionState& state);

}  // namespace rankmesh::exchange::detail

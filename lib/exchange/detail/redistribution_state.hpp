// SPDX-License-Identifier: BSD-3-Clause
// The private parts of a Redistribution.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bound_tensors.hpp"
#include "device_memory.hpp"
#include "device_rounds.hpp"
#include "direct_stream.hpp"
#include "group/detail/message_sequence.hpp"
#include "message_stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "ring_memory.hpp"

namespace rankmesh::exchange::detail {

/// Messages on the way in host memory use memory of this object, so an operation in flight shares
/// it.
struct RedistributionState {
  GroupCoordinator& group;
  rankmesh::detail::GroupLife life;
  TransferPlan plan;
  RedistributionOptions options;
  TransferOfRank part{};                  // refers to the plan
  BoundTensors tensors{};                 // refer to the plan and to the part
  MessageStream copies{};                 // this rank's own elements
  std::vector<MessageStream> sent{};      // by messages, in the order in which they move
  std::vector<MessageStream> received{};  // by messages, in the order in which they move
  std::vector<DirectStream> direct_sent{}, direct_received{};  // read by the receiver
  std::int64_t bytes = 0;       // that this rank sends, receives, reads and copies
  std::int64_t bytes_read = 0;  // of these, from the memory of other ranks
  std::int64_t number = 0;      // among the redistributions of the mesh
  std::int64_t starts = 0;      // transfers that have been started; the number of the next one
  bool is_running = false;
  std::unique_ptr<rankmesh::detail::SequenceMessages> messages{};
  RingMemory sent_memory{}, received_memory{};

  // For device memory, which frees itself after its uses. The messages of one transfer follow those
  // of another on the group's stream, so several transfers may be in flight.
  DeviceRounds rounds{};
  std::optional<OrderedMemory> device_memory{};

  // For direct reads.
  /// The number of the transfer that is in flight, from 1. It becomes 0 when this rank gives the
  /// transfer up: then its memory may change, and what others have read of it is without meaning.
  std::atomic<std::uint64_t> transfer{0};
  DirectMemory direct_memory{};

  /// Throws the errors of a constructor on this rank.
  void validate() const;
  /// Computes this rank's tensors and streams.
  void schedule();
  /// Prepares a transfer in device memory: checks the stream, and allocates the memory for messages
  /// if there is none.
  void prepare_device(StreamRef stream);
  /// Returns the tag of the messages of a step, or of the answers of direct reads.
  [[nodiscard]] int tag(TransferStep step, bool is_answer = false) const;
};

/// A list of the messages of a tensor.
using MessageList = std::vector<TransferMessage> TensorTransferOfRank::*;
/// Orders the streams of a rank. All ranks follow one order of all streams, so each of them needs
/// only a window of messages at a time: the first message that is not complete is in the windows of
/// both of its ranks. Ranks send to their successors in the group first, then to the ranks two
/// places further on, and so on, so all of them send and receive all the time.
/// @param kinds  See BoundTensors::kinds().
[[nodiscard]] std::vector<MessageStream> ordered_streams(const TransferOfRank& part,
                                                         const std::vector<TensorKind>& kinds,
                                                         Rank self, std::int64_t ranks,
                                                         MessageList list);

/// Starts a transfer with the memory to which the tensors are bound.
[[nodiscard]] std::unique_ptr<rankmesh::detail::MessageSequence> make_sequence(
    std::shared_ptr<RedistributionState> state);
/// The same for device memory.
[[nodiscard]] std::shared_ptr<rankmesh::detail::DeviceSequence> make_device_sequence(
    std::shared_ptr<RedistributionState> state);

}  // namespace rankmesh::exchange::detail

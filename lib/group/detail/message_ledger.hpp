// SPDX-License-Identifier: BSD-3-Clause
// How many messages a member has sent and received in a group.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "rankmesh/transport/call.hpp"

namespace rankmesh::detail {

/// Counts the messages of one member, for each other end and each tag. The counts of both ends are
/// compared when the group is closed: MPI and shared memory drop what nobody has received.
class MessageLedger {
 public:
  struct Count {
    std::int64_t sent = 0, received = 0;
    std::int64_t last_count = 0;  ///< Of the last message that was sent, in elements.
    DataType last_type = DataType::uint8;
    std::uint32_t last_name = 0;  ///< See Call::name_index.
  };
  /// One end of the messages of a pair.
  struct MessageCounts {
    std::uint64_t group = 0;        ///< Identifies the group.
    std::int64_t from = 0, to = 0;  ///< Members.
    std::int64_t tag = 0;           ///< Of a control queue, its number and `queues`.
    Count count{};
  };
  /// Added to the number of a control queue.
  static constexpr std::int64_t queues = std::int64_t{1} << 32;

  /// Counts what a call sends and receives.
  void add(const Call& call) {
    if (call.operation != Operation::recv) {
      Count& count = find(sends_, call.destination.value(), call.tag);
      ++count.sent;
      count.last_count = call.in.count;
      count.last_type = call.in.type;
      count.last_name = call.name_index;
    }
    if (call.operation != Operation::send)
      ++find(receives_, call.source.value(), call.tag).received;
  }
  /// Takes back a receive that was cancelled.
  void cancel(RankInGroup source, int tag) { --find(receives_, source.value(), tag).received; }
  /// Counts a message of a control queue, at its writer or at a reader.
  void add_of_queue(std::int64_t queue, RankInGroup writer, RankInGroup self, std::int64_t size);

  /// Returns a number whose sum over all members, modulo 2^64, is 0 if all messages were received.
  [[nodiscard]] std::uint64_t balance(std::uint64_t group, RankInGroup self) const;
  [[nodiscard]] bool is_empty() const { return counts_.empty(); }
  [[nodiscard]] std::vector<MessageCounts> entries(std::uint64_t group, RankInGroup self) const;

 private:
  struct PeerAndTag {
    std::int64_t peer = -1, tag = 0;
    friend bool operator==(const PeerAndTag&, const PeerAndTag&) = default;
  };
  struct HashOfPeer {
    std::size_t operator()(const PeerAndTag& key) const {
      return static_cast<std::size_t>(key.tag) * 0x9e3779b97f4a7c15U +
             static_cast<std::size_t>(key.peer);
    }
  };
  // The count that was used last.
  struct LastUsed {
    PeerAndTag key;
    Count* count = nullptr;
  };
  Count& find(LastUsed& latest, std::int64_t peer, std::int64_t tag) {
    const PeerAndTag key{peer, tag};
    if (latest.key == key) [[likely]]
      return *latest.count;
    latest = {key, &counts_[key]};
    return *latest.count;
  }

  std::unordered_map<PeerAndTag, Count, HashOfPeer> counts_;
  LastUsed sends_, receives_;
};

}  // namespace rankmesh::detail

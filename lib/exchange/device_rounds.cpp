// SPDX-License-Identifier: BSD-3-Clause
#include "detail/device_rounds.hpp"

#include <algorithm>
#include <utility>

namespace rankmesh::exchange::detail {
namespace {

constexpr std::int64_t message_alignment = 16;  // of packed messages, for the widest loads of NCCL
constexpr std::int64_t least_share = 256;

// What two ranks move in one round in one direction. It is the same on all ranks.
struct Share {
  std::int64_t distances;  // between ranks that have messages in one round
  std::int64_t bytes;
  std::int64_t messages;

  Share(std::int64_t ranks, std::int64_t memory) {
    constexpr std::int64_t most = most_operations_of_round / 2;
    const std::int64_t of_direction = memory / 2;
    distances = std::clamp<std::int64_t>(std::min(ranks - 1, of_direction / least_share), 1, most);
    bytes = of_direction / distances / message_alignment * message_alignment;
    messages = most / distances;
  }
};

// The streams between this rank and one other in one step and direction.
struct Pair {
  std::int64_t block;     // its rounds come after those of pairs with a lower number
  std::size_t next, end;  // streams
  StreamPosition walk{};
};

// The messages of one direction that are not in a round yet.
class Direction {
 public:
  // @param is_sent  Whether this rank sends the messages.
  Direction(const std::vector<MessageStream>& whole, bool is_sent, RankInGroup self,
            std::int64_t ranks, const Share& share)
      : share_{share} {
    for (const MessageStream& stream : whole) {
      const std::int64_t ahead =
          is_sent ? stream.peer.value() - self.value() : self.value() - stream.peer.value();
      const std::int64_t distance = (ahead + ranks) % ranks;
      const std::size_t begin = streams_.size();
      split(stream);
      pairs_.push_back(
          {static_cast<std::int64_t>(stream.step) * ranks + (distance - 1) / share.distances, begin,
           streams_.size()});
    }
    for (Pair& pair : pairs_) pair.walk.begin(streams_[pair.next]);
  }

  // Returns whether there are messages of pairs up to this block.
  [[nodiscard]] bool has_up_to(std::int64_t block) const {
    return first_ < pairs_.size() && pairs_[first_].block <= block;
  }
  [[nodiscard]] bool is_empty() const { return first_ == pairs_.size(); }
  [[nodiscard]] std::int64_t next_block() const { return pairs_[first_].block; }

  // Returns the messages of the next round of a block.
  std::vector<DeviceMessage> take(std::int64_t block) {
    std::vector<DeviceMessage> messages;
    std::int64_t place = 0;
    for (std::size_t p = first_; p < pairs_.size() && pairs_[p].block == block; ++p)
      take(pairs_[p], messages, place);
    memory_ = std::max(memory_, place);
    while (has_up_to(block) && pairs_[first_].next == pairs_[first_].end) ++first_;
    return messages;
  }
  [[nodiscard]] std::int64_t memory() const { return memory_; }
  std::vector<MessageStream> streams() && { return std::move(streams_); }

 private:
  // Gives large parts streams of their own.
  void split(const MessageStream& stream) {
    bool is_open = false;  // whether the last stream may get further parts
    for (const StreamPart& part : stream.parts) {
      const bool is_small = stream.kind_of(part).bytes() < least_own_message;
      if (!is_open || !is_small) streams_.push_back({stream.peer, stream.step, stream.kinds});
      streams_.back().parts.push_back(part);
      is_open = is_small;
    }
  }

  void take(Pair& pair, std::vector<DeviceMessage>& messages, std::int64_t& place) {
    const std::int64_t end = place + share_.bytes;
    for (std::int64_t n = 0; n < share_.messages && pair.next < pair.end; ++n) {
      const std::int64_t bytes = pair.walk.next_bytes(share_.bytes);
      const std::int64_t size =
          (bytes + message_alignment - 1) / message_alignment * message_alignment;
      if (place + size > end) return;
      messages.push_back({pair.next, bytes, place});
      place += size;
      pair.walk.skip(bytes);
      if (pair.walk.is_at_end() && ++pair.next < pair.end) pair.walk.begin(streams_[pair.next]);
    }
  }

  Share share_;
  std::vector<MessageStream> streams_;
  std::vector<Pair> pairs_;
  std::size_t first_ = 0;  // pair that has messages
  std::int64_t memory_ = 0;
};

}  // namespace

DeviceRounds device_rounds(const std::vector<MessageStream>& sent,
                           const std::vector<MessageStream>& received, RankInGroup self,
                           std::int64_t ranks, std::int64_t memory) {
  const Share share{ranks, memory};
  Direction sends{sent, true, self, ranks, share}, receives{received, false, self, ranks, share};
  DeviceRounds result;
  while (!sends.is_empty() || !receives.is_empty()) {
    const std::int64_t block = sends.is_empty() ? receives.next_block()
                               : receives.is_empty()
                                   ? sends.next_block()
                                   : std::min(sends.next_block(), receives.next_block());
    while (sends.has_up_to(block) || receives.has_up_to(block))
      result.rounds.push_back({sends.take(block), receives.take(block)});
  }
  result.sent_memory = sends.memory();
  result.received_memory = receives.memory();
  result.sent = std::move(sends).streams();
  result.received = std::move(receives).streams();
  return result;
}

}  // namespace rankmesh::exchange::detail

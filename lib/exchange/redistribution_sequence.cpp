// SPDX-License-Identifier: BSD-3-Clause
// One transfer: windows of messages that move over the streams of a rank.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>

#include "detail/redistribution_state.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::size_t most_in_flight = 64;  // messages in each direction
// The memory of packed messages is small enough to stay in the cache between packing and sending,
// and between receiving and unpacking.
constexpr std::int64_t most_message = 1 << 20;
constexpr std::int64_t packed_messages = 4;  // of this size, in each direction
constexpr int turns_between_looks = 16;      // of direct reads, between calls of MPI

// The messages of one direction.
class Lane {
 public:
  struct Message {
    std::unique_ptr<Pending> pending;
    std::byte* packed = nullptr;  // in the ring; null if it is sent or received in place
    std::int64_t bytes = 0;
    std::size_t stream = 0;
  };

  Lane(const std::vector<MessageStream>& streams, RingMemory& memory)
      : streams_{streams}, memory_{memory} {
    memory_.clear();
    if (!streams_.empty()) position_.begin(streams_.front());
  }

  [[nodiscard]] bool has_next() const { return stream_ < streams_.size(); }
  [[nodiscard]] const MessageStream& stream() const { return streams_[stream_]; }
  [[nodiscard]] std::size_t stream_number() const { return stream_; }
  StreamPosition& position() { return position_; }
  RingMemory& memory() { return memory_; }

  [[nodiscard]] bool is_full() const { return count_ == most_in_flight; }
  [[nodiscard]] bool is_empty() const { return count_ == 0; }
  Message& oldest() { return ring_[first_]; }
  /// Returns the number of the first stream that has messages to complete.
  [[nodiscard]] std::size_t first_unfinished() const {
    return is_empty() ? stream_ : ring_[first_].stream;
  }
  void push(Message message) {
    ring_[(first_ + count_) % most_in_flight] = std::move(message);
    ++count_;
    if (!position_.is_at_end()) return;
    if (++stream_ < streams_.size()) position_.begin(streams_[stream_]);
  }
  void pop() {
    Message& message = oldest();
    if (message.packed != nullptr) memory_.give_back(message.packed, message.bytes);
    message = {};
    first_ = (first_ + 1) % most_in_flight;
    --count_;
  }
  [[nodiscard]] bool is_in_mpi() const {
    return std::ranges::any_of(
        ring_, [](const Message& m) { return m.pending != nullptr && m.pending->is_in_mpi(); });
  }

 private:
  const std::vector<MessageStream>& streams_;
  RingMemory& memory_;
  std::size_t stream_ = 0;  // of the next message
  StreamPosition position_;
  std::array<Message, most_in_flight> ring_{};
  std::size_t first_ = 0, count_ = 0;
};

class Transfer final : public rankmesh::detail::MessageSequence {
 public:
  explicit Transfer(std::shared_ptr<RedistributionState> state)
      : state_{std::move(state)},
        sends_{state_->sent, state_->sent_memory},
        receives_{state_->received, state_->received_memory} {
    largest_ = std::min(most_message, state_->options.memory / 2 / packed_messages);
    const std::int64_t of_direction = packed_messages * largest_;
    state_->sent_memory.reserve(std::min(of_direction, sum_of(state_->sent)));
    state_->received_memory.reserve(std::min(of_direction, sum_of(state_->received)));
    if (!state_->received.empty()) arrived_.begin(state_->received.front());
    state_->transfer = static_cast<std::uint64_t>(state_->starts) + 1;  // 0: given up
    state_->is_running = true;
  }
  // Not called after a failure, because MPI may then still use the memory.
  ~Transfer() override { state_->is_running = false; }

  bool test() override {
    try {
      return make_progress();
    } catch (const UsageError& error) {
      // A UsageError says that the operation is complete, but the other messages are on the way.
      throw Error{error.message(), error.hint()};
    }
  }
  void give_up() noexcept override { state_->transfer = 0; }
  [[nodiscard]] bool calls_program() const override { return state_->options.progress != nullptr; }
  [[nodiscard]] bool is_in_mpi() const override {
    return sends_.is_in_mpi() || receives_.is_in_mpi() ||
           std::ranges::any_of(direct_sends_, &DirectSend::is_in_mpi) ||
           std::ranges::any_of(direct_receives_, &DirectReceive::is_in_mpi);
  }

  [[nodiscard]] std::vector<RankInGroup> unfinished() const override {
    std::set<std::int64_t> peers;
    for (std::size_t s = sends_.first_unfinished(); s < state_->sent.size(); ++s)
      peers.insert(state_->sent[s].peer.value());
    for (std::size_t s = arrived_streams_; s < state_->received.size(); ++s)
      peers.insert(state_->received[s].peer.value());
    const auto add = [&](const auto& direct) {
      if (!direct.is_complete()) peers.insert(direct.stream().peer.value());
    };
    std::ranges::for_each(direct_sends_, add);
    std::ranges::for_each(direct_receives_, add);
    return {peers.begin(), peers.end()};
  }
  [[nodiscard]] std::size_t finished() const override {
    return sends_.first_unfinished() + arrived_streams_ +
           static_cast<std::size_t>(
               std::ranges::count_if(direct_sends_, &DirectSend::is_complete) +
               std::ranges::count_if(direct_receives_, &DirectReceive::is_complete));
  }

 private:
  static std::int64_t sum_of(const std::vector<MessageStream>& streams) {
    std::int64_t sum = 0;
    for (const MessageStream& stream : streams) sum += stream.bytes;
    return sum;
  }

  bool make_progress() {
    if (!std::exchange(has_begun_, true)) begin();
    while (!receives_.is_empty() && receives_.oldest().pending->test()) end_receive();
    while (!sends_.is_empty() && sends_.oldest().pending->test()) {
      count(sends_.oldest().bytes);
      sends_.pop();
    }
    post_receives();
    post_sends();
    const bool are_read = test_direct_streams();
    end_first_step();
    post_sends();
    return sends_.is_empty() && receives_.is_empty() && are_read && has_first_step_;
  }

  // The messages are posted before the copies, so that they move meanwhile.
  void begin() {
    tensors().begin_sums();
    for (const DirectStream& direct : state_->direct_received)
      direct_receives_.emplace_back(*state_, direct);
    for (DirectStream& direct : state_->direct_sent) direct_sends_.emplace_back(*state_, direct);
    test_direct_sends();
    post_receives();
    post_sends();
    for (const StreamPart& part : state_->copies.parts) {
      const StreamKind& own = state_->copies.kind_of(part);
      tensors().copy(part.tensor, own);
      count(own.bytes());
    }
    end_first_step();
    post_sends();
  }

  // Reads all that is offered, from one peer after the other in turns. Peers usually have
  // neighbouring parts of each tensor, so all that is stored in a page of the target is stored
  // within a few turns. Returns whether all direct streams are complete.
  bool test_direct_streams() {
    for (bool has_read = true; has_read;) {
      has_read = false;
      test_direct_sends();
      for (DirectReceive& direct : direct_receives_) direct.look();
      bool is_offered = true;
      for (int turn = 0; turn < turns_between_looks && is_offered; ++turn) {
        is_offered = false;
        for (DirectReceive& direct : direct_receives_) {
          if (!direct.is_offered()) continue;
          count(direct.read());
          has_read = is_offered = true;
        }
      }
    }
    return std::ranges::all_of(direct_receives_, &DirectReceive::is_complete) &&
           std::ranges::all_of(direct_sends_, &DirectSend::is_complete);
  }
  void test_direct_sends() {
    for (DirectSend& direct : direct_sends_)
      if (!direct.is_complete() && may_begin(direct.stream())) (void)direct.test();
  }
  [[nodiscard]] bool may_begin(const MessageStream& sent) const {
    return sent.step == TransferStep::first || has_first_step_;
  }

  void post_receives() {
    while (receives_.has_next() && !receives_.is_full()) {
      const MessageStream& stream = receives_.stream();
      const std::int64_t bytes = receives_.position().next_bytes(largest_);
      std::byte* to = nullptr;
      if (const auto single = receives_.position().single_strip(bytes))
        to = tensors().received_in_place(single->first, stream.step, single->second);
      std::byte* packed = nullptr;
      if (to == nullptr) to = packed = receives_.memory().take(bytes);
      if (to == nullptr) return;
      receives_.position().skip(bytes);
      auto pending = state_->messages->start({.operation = Operation::recv,
                                              .tag = state_->tag(stream.step),
                                              .out = {to, bytes, DataType::uint8},
                                              .source = stream.peer});
      receives_.push({std::move(pending), packed, bytes, receives_.stream_number()});
    }
  }

  void post_sends() {
    while (sends_.has_next() && !sends_.is_full() && may_begin(sends_.stream())) {
      const MessageStream& stream = sends_.stream();
      const std::int64_t bytes = sends_.position().next_bytes(largest_);
      const std::byte* from = nullptr;
      if (const auto single = sends_.position().single_strip(bytes))
        from = tensors().sent_in_place(single->first, stream.step, single->second);
      std::byte* packed = nullptr;
      if (from == nullptr) from = packed = sends_.memory().take(bytes);
      if (from == nullptr) return;
      std::byte* end = packed;
      if (packed == nullptr)
        sends_.position().skip(bytes);
      else
        sends_.position().next(bytes,
                               [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                                 end = tensors().pack(tensor, stream.step, strip, end, kind.type());
                               });
      auto pending = state_->messages->start({.operation = Operation::send,
                                              .tag = state_->tag(stream.step),
                                              .in = {from, bytes, DataType::uint8},
                                              .destination = stream.peer});
      sends_.push({std::move(pending), packed, bytes, sends_.stream_number()});
    }
  }

  void end_receive() {
    const Lane::Message& message = receives_.oldest();
    const MessageStream& stream = state_->received[message.stream];
    const std::byte* from = message.packed;
    if (from == nullptr)
      arrived_.skip(message.bytes);
    else
      arrived_.next(message.bytes,
                    [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                      from = tensors().unpack(tensor, stream.step, strip, from, kind.type());
                    });
    count(message.bytes);
    if (arrived_.is_at_end()) {
      ++arrived_streams_;
      if (arrived_streams_ < state_->received.size())
        arrived_.begin(state_->received[arrived_streams_]);
      end_first_step();
    }
    receives_.pop();
  }

  // Ends the first step when all that belongs to it has arrived.
  void end_first_step() {
    if (has_first_step_) return;
    if (arrived_streams_ < state_->received.size() &&
        state_->received[arrived_streams_].step == TransferStep::first)
      return;
    for (const DirectReceive& direct : direct_receives_)
      if (direct.stream().step == TransferStep::first && !direct.has_read()) return;
    tensors().end_sums();
    has_first_step_ = true;
    test_direct_sends();
  }

  void count(std::int64_t bytes) noexcept {
    done_ += bytes;
    if (state_->options.progress) state_->options.progress(done_, state_->bytes);
  }
  [[nodiscard]] const BoundTensors& tensors() const { return state_->tensors; }

  std::shared_ptr<RedistributionState> state_;
  std::int64_t largest_ = 0;  // message, in bytes
  Lane sends_, receives_;
  std::deque<DirectSend> direct_sends_;
  std::deque<DirectReceive> direct_receives_;
  StreamPosition arrived_;           // behind what was unpacked
  std::size_t arrived_streams_ = 0;  // whose elements have all arrived
  bool has_begun_ = false;
  bool has_first_step_ = false;  // whether the first step has ended
  std::int64_t done_ = 0;        // bytes
};

}  // namespace

std::unique_ptr<rankmesh::detail::MessageSequence> make_sequence(
    std::shared_ptr<RedistributionState> state) {
  return std::make_unique<Transfer>(std::move(state));
}

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// One transfer: windows of messages that move over the streams of a rank.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "detail/direct_transfer.hpp"
#include "detail/redistribution_state.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange::detail {
namespace {

constexpr std::size_t most_in_flight = 64;  // messages in each direction
// The memory of packed messages is small enough to stay in the cache between packing and sending,
// and between receiving and unpacking.
constexpr std::int64_t most_message = 1 << 20;
constexpr std::int64_t packed_messages = 4;  // of this size, in each direction

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
    if (!streams_.empty()) walk_.begin(streams_.front());
  }

  [[nodiscard]] bool has_next() const { return stream_ < streams_.size(); }
  [[nodiscard]] const MessageStream& stream() const { return streams_[stream_]; }
  [[nodiscard]] std::size_t stream_number() const { return stream_; }
  StreamWalk& walk() { return walk_; }
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
    if (!walk_.is_at_end()) return;
    if (++stream_ < streams_.size()) walk_.begin(streams_[stream_]);
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
  StreamWalk walk_;
  std::array<Message, most_in_flight> ring_{};
  std::size_t first_ = 0, count_ = 0;
};

class Transfer final : public rankmesh::detail::MessageSequence {
 public:
  explicit Transfer(std::shared_ptr<RedistributionState> state)
      : state_{std::move(state)},
        sends_{state_->sent, state_->sent_memory},
        receives_{state_->received, state_->received_memory},
        direct_{*state_, [this](std::int64_t bytes) { count(bytes); }} {
    state_->is_running = true;
    largest_ = std::min(most_message, state_->options.memory / 2 / packed_messages);
    const std::int64_t of_direction = packed_messages * largest_;
    state_->sent_memory.reserve(std::min(of_direction, sum_of(state_->sent)));
    state_->received_memory.reserve(std::min(of_direction, sum_of(state_->received)));
    if (!state_->received.empty()) arrived_.begin(state_->received.front());
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
  void give_up() noexcept override { direct_.give_up(); }
  [[nodiscard]] bool calls_program() const override { return state_->options.progress != nullptr; }
  [[nodiscard]] bool is_in_mpi() const override {
    return sends_.is_in_mpi() || receives_.is_in_mpi() || direct_.is_in_mpi();
  }

  [[nodiscard]] std::vector<RankInGroup> unfinished() const override {
    std::set<std::int64_t> peers;
    for (std::size_t s = sends_.first_unfinished(); s < state_->sent.size(); ++s)
      peers.insert(state_->sent[s].peer.value());
    for (std::size_t s = arrived_streams_; s < state_->received.size(); ++s)
      peers.insert(state_->received[s].peer.value());
    direct_.add_unfinished(peers);
    return {peers.begin(), peers.end()};
  }
  [[nodiscard]] std::size_t finished() const override {
    return sends_.first_unfinished() + arrived_streams_ + direct_.finished();
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
    const bool has_read_all = direct_.test();
    end_first_step();
    post_sends();
    return sends_.is_empty() && receives_.is_empty() && has_read_all && has_first_step_;
  }

  // The messages are posted before the copies, so that they move meanwhile.
  void begin() {
    for_each_sum([](const MovedTensor& tensor, const TensorTransferOfRank& part) {
      tensor.begin_sums(part);
    });
    direct_.begin_step(TransferStep::first);
    post_receives();
    post_sends();
    StripCursor cursor;
    for (const StreamPart& part : state_->copies.parts) {
      const StreamKind& own = state_->copies.kind_of(part);
      tensors()[part.tensor].copy(own, cursor);
      count(own.bytes());
    }
    end_first_step();
    post_sends();
  }

  void post_receives() {
    while (receives_.has_next() && !receives_.is_full()) {
      const MessageStream& stream = receives_.stream();
      const std::int64_t bytes = receives_.walk().next_bytes(largest_);
      std::byte* to = nullptr;
      if (const auto single = receives_.walk().single_strip(bytes))
        to = tensors()[single->first].received_in_place(stream.step, single->second);
      std::byte* packed = nullptr;
      if (to == nullptr) to = packed = receives_.memory().take(bytes);
      if (to == nullptr) return;
      receives_.walk().skip(bytes);
      auto pending = state_->messages->start({.operation = Operation::recv,
                                              .tag = state_->tag(),
                                              .out = {to, bytes, DataType::uint8},
                                              .source = stream.peer});
      receives_.push({std::move(pending), packed, bytes, receives_.stream_number()});
    }
  }

  void post_sends() {
    while (sends_.has_next() && !sends_.is_full()) {
      const MessageStream& stream = sends_.stream();
      if (stream.step == TransferStep::forward && !has_first_step_) return;
      const std::int64_t bytes = sends_.walk().next_bytes(largest_);
      const std::byte* from = nullptr;
      if (const auto single = sends_.walk().single_strip(bytes))
        from = tensors()[single->first].sent_in_place(stream.step, single->second);
      std::byte* packed = nullptr;
      if (from == nullptr) from = packed = sends_.memory().take(bytes);
      if (from == nullptr) return;
      std::byte* end = packed;
      if (packed == nullptr) sends_.walk().skip(bytes);
      if (packed != nullptr)
        sends_.walk().next(bytes,
                           [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                             end = tensors()[tensor].pack(stream.step, strip, end, kind.type());
                           });
      auto pending = state_->messages->start({.operation = Operation::send,
                                              .tag = state_->tag(),
                                              .in = {from, bytes, DataType::uint8},
                                              .destination = stream.peer});
      sends_.push({std::move(pending), packed, bytes, sends_.stream_number()});
    }
  }

  void end_receive() {
    const Lane::Message& message = receives_.oldest();
    const MessageStream& stream = state_->received[message.stream];
    const std::byte* from = message.packed;
    if (from == nullptr) arrived_.skip(message.bytes);
    if (from != nullptr)
      arrived_.next(message.bytes,
                    [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
                      from = tensors()[tensor].unpack(stream.step, strip, from, kind.type());
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
    if (has_first_step_ || !direct_.has_first_step()) return;
    if (arrived_streams_ < state_->received.size() &&
        state_->received[arrived_streams_].step == TransferStep::first)
      return;
    for_each_sum(
        [](const MovedTensor& tensor, const TensorTransferOfRank& part) { tensor.end_sums(part); });
    has_first_step_ = true;
    direct_.begin_step(TransferStep::forward);
  }

  void count(std::int64_t bytes) noexcept {
    done_ += bytes;
    if (state_->options.progress) state_->options.progress(done_, state_->bytes);
  }

  template <class Use>
  void for_each_sum(Use&& use) const {
    if (!tensors().have_sums()) return;
    for (std::size_t t = 0; t < tensors().size(); ++t) use(tensors()[t], state_->part[t]);
  }
  [[nodiscard]] const MovedTensors& tensors() const { return state_->tensors; }

  std::shared_ptr<RedistributionState> state_;
  std::int64_t largest_ = 0;  // message, in bytes
  Lane sends_, receives_;
  DirectTransfer direct_;
  StreamWalk arrived_;               // behind what was unpacked
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

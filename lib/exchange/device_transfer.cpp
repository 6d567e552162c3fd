// SPDX-License-Identifier: BSD-3-Clause
// One transfer in device memory: copies and rounds of messages on one stream.
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "detail/device_copies.hpp"
#include "detail/redistribution_state.hpp"
#include "group/detail/connection.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::GroupAccess;

// The streams of one direction, from the beginning.
std::vector<StreamPosition> walks_of(const std::vector<MessageStream>& streams) {
  std::vector<StreamPosition> walks(streams.size());
  for (std::size_t s = 0; s < streams.size(); ++s) walks[s].begin(streams[s]);
  return walks;
}

// Notes at its end, after an error too, that work on the stream uses the memory for messages.
struct UseOfMemory {
  RedistributionState& state;
  StreamRef stream;
  ~UseOfMemory() {
    if (state.device_memory) state.device_memory->note_use(stream);
  }
};

class DeviceTransfer final : public rankmesh::detail::DeviceSequence {
 public:
  explicit DeviceTransfer(std::shared_ptr<RedistributionState> state) : state_{std::move(state)} {}

  void queue(StreamRef stream, const Issue& issue) override {
    const UseOfMemory use{*state_, stream};
    copy_own();
    before_.queue(stream);
    sent_ = walks_of(rounds().sent);
    received_ = walks_of(rounds().received);
    for (const DeviceRound& round : rounds().rounds) {
      for (const DeviceMessage& message : round.sends) add_send(message);
      for (const DeviceMessage& message : round.receives) add_receive(message);
      for (Call& call : calls_) call.stream = stream;
      before_.queue(stream);
      issue(calls_);
      after_.queue(stream);
      calls_.clear();
    }
  }

  [[nodiscard]] std::vector<RankInGroup> peers() const override {
    std::set<RankInGroup> peers;
    for (const auto* list : {&rounds().sent, &rounds().received})
      for (const MessageStream& stream : *list) peers.insert(stream.peer);
    return {peers.begin(), peers.end()};
  }

 private:
  void copy_own() {
    if (state_->copies.bytes == 0) return;
    StreamPosition walk;
    walk.begin(state_->copies);
    walk.next(state_->copies.bytes, [&](std::size_t tensor, const StreamKind&, const Strip& strip) {
      before_.add(tensor, tensors().sender(tensor, TransferStep::first), tensors().target(tensor),
                  strip);
    });
  }

  void add_send(const DeviceMessage& message) {
    const MessageStream& stream = rounds().sent[message.stream];
    StreamPosition& walk = sent_[message.stream];
    const std::byte* from = nullptr;
    if (const auto single = walk.single_strip(message.bytes))
      from = tensors().sent_in_place(single->first, stream.step, single->second);
    const bool is_packed = from == nullptr || is_registered(from);
    std::byte* end = state_->device_memory->data() + message.place;
    if (is_packed) from = end;
    if (!is_packed) walk.skip(message.bytes);
    if (is_packed)
      walk.next(message.bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
        before_.add(tensor, tensors().sender(tensor, stream.step), {end, kind.type()},
                    in_message(strip, false));
        end += strip.elements() * kind.width();
      });
    calls_.push_back({.operation = Operation::send,
                      .in = {from, message.bytes, DataType::uint8, MemoryKind::device},
                      .destination = stream.peer});
  }

  void add_receive(const DeviceMessage& message) {
    const MessageStream& stream = rounds().received[message.stream];
    StreamPosition& walk = received_[message.stream];
    std::byte* to = nullptr;
    if (const auto single = walk.single_strip(message.bytes))
      to = tensors().received_in_place(single->first, stream.step, single->second);
    const bool is_packed = to == nullptr || is_registered(to);
    std::byte* end = state_->device_memory->data() + rounds().sent_memory + message.place;
    if (is_packed) to = end;
    if (!is_packed) walk.skip(message.bytes);
    if (is_packed)
      walk.next(message.bytes, [&](std::size_t tensor, const StreamKind& kind, const Strip& strip) {
        after_.add(tensor, {end, kind.type()}, tensors().target(tensor), in_message(strip, true));
        end += strip.elements() * kind.width();
      });
    calls_.push_back({.operation = Operation::recv,
                      .out = {to, message.bytes, DataType::uint8, MemoryKind::device},
                      .source = stream.peer});
  }

  // NCCL must not get registered memory for a message that has ordinary memory on the other side,
  // which this rank does not know.
  [[nodiscard]] bool is_registered(const std::byte* memory) const {
    return GroupAccess::connection(state_->group).device()->is_registered(memory);
  }

  // Returns a strip whose elements are dense on one side, because they are in a message.
  static Strip in_message(Strip strip, bool is_received) {
    (is_received ? strip.source : strip.target) = 0;
    (is_received ? strip.source_step : strip.target_step) = strip.length;
    return strip;
  }

  [[nodiscard]] const DeviceRounds& rounds() const { return state_->rounds; }
  [[nodiscard]] const BoundTensors& tensors() const { return state_->tensors; }

  std::shared_ptr<RedistributionState> state_;
  std::vector<StreamPosition> sent_, received_;
  std::vector<Call> calls_;      // of the present round
  DeviceCopies before_, after_;  // the messages of the present round
};

}  // namespace

std::shared_ptr<rankmesh::detail::DeviceSequence> make_device_sequence(
    std::shared_ptr<RedistributionState> state) {
  return std::make_shared<DeviceTransfer>(std::move(state));
}

}  // namespace rankmesh::exchange::detail

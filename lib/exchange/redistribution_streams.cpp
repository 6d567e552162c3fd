// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "detail/redistribution_state.hpp"

namespace rankmesh::exchange::detail {
namespace {

// Adds the parts of all tensors to streams. Tensors of one kind share their messages.
class StreamMaker {
 public:
  StreamMaker(const TransferOfRank& part, const std::vector<TensorKind>& kinds)
      : part_{part}, kinds_{kinds}, slots_(part.kind_count()), tensors_(part.kind_count()) {
    for (std::size_t t = 0; t < part.size(); ++t) ++tensors_[part.kind(t)];
  }

  // Says that each tensor of a kind has this message in a stream, which must not move.
  void add(MessageStream& stream, std::size_t kind, const TransferMessage& message) {
    if (message.elements == 0) return;
    slots_[kind].push_back({&stream, static_cast<std::uint32_t>(stream.kinds->size())});
    stream.kinds->emplace_back(message, kinds_[kind].type_of(message.step));
    stream.parts.reserve(stream.parts.capacity() + tensors_[kind]);
  }
  // Adds the parts of the tensors to the streams, in the order of the tensors.
  void make_parts() {
    for (std::size_t t = 0; t < part_.size(); ++t)
      for (const Slot& slot : slots_[part_.kind(t)])
        slot.stream->parts.push_back({static_cast<std::uint32_t>(t), slot.kind});
  }

 private:
  struct Slot {
    MessageStream* stream;
    std::uint32_t kind;  // in the stream
  };
  const TransferOfRank& part_;
  const std::vector<TensorKind>& kinds_;
  std::vector<std::vector<Slot>> slots_;  // of each kind
  std::vector<std::size_t> tensors_;      // the number of tensors of each kind
};

// Returns the messages of each kind; a kind is found by its first tensor.
std::vector<const TensorTransferOfRank*> parts_of_kinds(const TransferOfRank& part) {
  std::vector<const TensorTransferOfRank*> of_kinds;
  for (std::size_t t = 0; t < part.size(); ++t)
    if (part.kind(t) == of_kinds.size()) of_kinds.push_back(&part[t]);
  return of_kinds;
}

MessageStream stream_of_copies(const TransferOfRank& part, const std::vector<TensorKind>& kinds,
                               RankInGroup self) {
  MessageStream stream{self};
  StreamMaker maker{part, kinds};
  const auto of_kinds = parts_of_kinds(part);
  for (std::size_t kind = 0; kind < of_kinds.size(); ++kind)
    for (const TransferMessage& copy : of_kinds[kind]->copies) maker.add(stream, kind, copy);
  maker.make_parts();
  stream.count_bytes();
  return stream;
}

}  // namespace

std::vector<MessageStream> ordered_streams(const TransferOfRank& part,
                                           const std::vector<TensorKind>& kinds, Rank self,
                                           std::int64_t ranks, bool sends) {
  std::map<std::pair<TransferStep, std::int64_t>, MessageStream> streams;
  StreamMaker maker{part, kinds};
  const auto of_kinds = parts_of_kinds(part);
  for (std::size_t kind = 0; kind < of_kinds.size(); ++kind)
    for (const TransferMessage& message :
         sends ? of_kinds[kind]->sends : of_kinds[kind]->receives) {
      if (message.elements == 0) continue;
      const std::int64_t ahead =
          sends ? message.peer.value() - self.value() : self.value() - message.peer.value();
      MessageStream& stream = streams[{message.step, (ahead + ranks) % ranks}];
      stream.peer = RankInGroup{message.peer.value()};
      stream.step = message.step;
      maker.add(stream, kind, message);
    }
  maker.make_parts();
  std::vector<MessageStream> list;
  for (auto& [key, stream] : streams) {
    stream.count_bytes();
    list.push_back(std::move(stream));
  }
  return list;
}

void RedistributionState::schedule() {
  const Rank self{group.rank_in_group().value()};
  part = plan.of(self);
  tensors = BoundTensors{plan, part, self};
  copies = stream_of_copies(part, tensors.kinds(), group.rank_in_group());
  sent = ordered_streams(part, tensors.kinds(), self, group.size(), true);
  received = ordered_streams(part, tensors.kinds(), self, group.size(), false);
  const bool is_on_device = options.kind == MemoryKind::device;
  if (!is_on_device) take_direct_streams(*this);
  if (!direct_received.empty())
    direct_memory.scratch = std::make_unique_for_overwrite<std::byte[]>(direct_scratch);
  for (const auto* list : {&sent, &received})
    for (const MessageStream& stream : *list) bytes += stream.bytes;
  for (const DirectStream& direct : direct_received) bytes_read += direct.stream.bytes;
  bytes += bytes_read + copies.bytes;
  if (is_on_device)
    rounds = device_rounds(sent, received, group.rank_in_group(), group.size(), options.memory);
}

}  // namespace rankmesh::exchange::detail

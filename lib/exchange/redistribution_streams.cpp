// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "detail/redistribution_state.hpp"

namespace rankmesh::exchange::detail {

std::vector<MessageStream> ordered_streams(const TransferOfRank& part,
                                           const std::vector<TensorKind>& kinds, Rank self,
                                           std::int64_t ranks, MessageList list) {
  struct Slot {
    MessageStream* stream;
    std::uint32_t kind;  // in the stream
  };
  std::map<std::pair<TransferStep, std::int64_t>, MessageStream> streams;
  std::vector<std::vector<Slot>> slots;  // of each kind
  const std::int64_t sign = list == &TensorTransferOfRank::receives ? -1 : 1;
  for (std::size_t t = 0; t < part.size(); ++t) {
    if (part.kind(t) == slots.size()) {  // its first tensor
      slots.emplace_back();
      for (const TransferMessage& message : part[t].*list) {
        if (message.elements == 0) continue;
        const std::int64_t ahead = sign * (message.peer.value() - self.value());
        MessageStream& stream = streams[{message.step, (ahead + ranks) % ranks}];
        stream.peer = RankInGroup{message.peer.value()};
        stream.step = message.step;
        slots.back().push_back({&stream, static_cast<std::uint32_t>(stream.kinds->size())});
        stream.kinds->emplace_back(message, kinds[part.kind(t)].type_of(message.step));
      }
    }
    for (const Slot& slot : slots[part.kind(t)])
      slot.stream->parts.push_back({static_cast<std::uint32_t>(t), slot.kind});
  }
  std::vector<MessageStream> ordered;
  for (auto& [key, stream] : streams) {
    stream.parts.shrink_to_fit();
    stream.count_bytes();
    ordered.push_back(std::move(stream));
  }
  return ordered;
}

void RedistributionState::schedule() {
  const Rank self{group.rank_in_group().value()};
  part = plan.of(self);
  tensors = BoundTensors{plan, part, self};
  const auto streams = [&](MessageList list) {
    return ordered_streams(part, tensors.kinds(), self, group.size(), list);
  };
  for (MessageStream& own : streams(&TensorTransferOfRank::copies)) copies = std::move(own);
  sent = streams(&TensorTransferOfRank::sends);
  received = streams(&TensorTransferOfRank::receives);
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

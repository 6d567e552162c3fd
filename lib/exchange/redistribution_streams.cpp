// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "detail/redistribution_state.hpp"

namespace rankmesh::exchange::detail {

std::vector<MessageStream> ordered_streams(const TransferOfRank& part,
                                           const std::vector<MovedTensor>& tensors, Rank self,
                                           std::int64_t ranks, bool sends) {
  std::map<std::pair<TransferStep, std::int64_t>, MessageStream> streams;
  for (std::size_t t = 0; t < part.size(); ++t) {
    const TensorTransferOfRank& of_tensor = part[t];
    for (const TransferMessage& message : sends ? of_tensor.sends : of_tensor.receives) {
      if (message.elements == 0) continue;
      const std::int64_t ahead =
          sends ? message.peer.value() - self.value() : self.value() - message.peer.value();
      MessageStream& stream = streams[{message.step, (ahead + ranks) % ranks}];
      stream.peer = RankInGroup{message.peer.value()};
      stream.step = message.step;
      stream.parts.push_back({t, &message, tensors[t].type_in_message(message.step)});
    }
  }
  std::vector<MessageStream> list;
  for (auto& [key, stream] : streams) list.push_back(std::move(stream));
  return list;
}

void RedistributionState::schedule() {
  const Rank self{group.rank_in_group().value()};
  part = plan.of(self);
  for (const TensorTransfer& tensor : plan.tensors()) tensors.emplace_back(tensor, self);
  sent = ordered_streams(part, tensors, self, group.size(), true);
  received = ordered_streams(part, tensors, self, group.size(), false);
  const bool is_on_device = options.kind == MemoryKind::device;
  if (!is_on_device) direct = take_direct_streams(*this);
  if (!direct.empty()) {
    table_places.push_back(0);
    for (const MovedTensor& tensor : tensors)
      table_places.push_back(table_places.back() + tensor.published_size());
    direct_scratch = std::make_unique_for_overwrite<std::byte[]>(direct_piece);
  }
  for (const auto* list : {&sent, &received})
    for (const MessageStream& stream : *list) bytes += bytes_of(stream);
  for (const DirectPeer& peer : direct)
    for (const MessageStream& stream : peer.received) bytes_read += bytes_of(stream);
  bytes += bytes_read;
  for (std::size_t t = 0; t < part.size(); ++t)
    for (const TransferMessage& copy : part[t].copies)
      bytes +=
          copy.elements * static_cast<std::int64_t>(size_of(tensors[t].type_in_message(copy.step)));
  if (is_on_device)
    rounds = device_rounds(sent, received, group.rank_in_group(), group.size(), options.memory);
}

}  // namespace rankmesh::exchange::detail

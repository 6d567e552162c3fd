// SPDX-License-Identifier: BSD-3-Clause
// Chooses the pairs of ranks that read each other's memory instead of sending messages.
#include "detail/direct_peer.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "detail/redistribution_state.hpp"
#include "group/detail/mesh_runtime.hpp"
#include "rankmesh/group/detail/group_access.hpp"

namespace rankmesh::exchange::detail {
namespace {

using rankmesh::detail::GroupAccess;

// Of a pair of ranks. Below, one message costs less than two notices and the system calls.
constexpr std::int64_t least_bytes = 8 << 10;
// The mean length of the runs that are read from the sender's memory. A read of a shorter run costs
// more in the system than a copy of it into packed memory.
constexpr std::int64_t least_mean_run = 2048;
constexpr std::int64_t least_packed_piece = 4 << 10;
constexpr std::int64_t most_packed_piece = 512 << 10;  // stays in the cache

// What a pair of ranks exchanges in both directions.
struct Exchange {
  std::int64_t bytes = 0;
  std::int64_t runs = 0;  // contiguous at the sender
};

std::int64_t runs_of(const TransferBlock& block) {
  std::int64_t runs = 1, length = block.length;
  for (auto loop = block.loops.rbegin(); loop != block.loops.rend(); ++loop) {
    if (runs == 1 && loop->source_stride == length)
      length *= loop->count;
    else
      runs *= loop->count;
  }
  return runs;
}

void add(Exchange& exchange, const MessageStream& stream) {
  std::vector<std::int64_t> runs(stream.kinds->size());
  for (std::size_t kind = 0; kind < runs.size(); ++kind)
    for (const TransferBlock& block : (*stream.kinds)[kind].message().blocks)
      runs[kind] += runs_of(block);
  for (const StreamPart& part : stream.parts) exchange.runs += runs[part.kind];
  exchange.bytes += stream.bytes;
}

// The receiver reads the elements as they lie in the sender's memory.
void set_types_of_sender(MessageStream& stream, const MovedTensors& tensors) {
  for (const StreamPart& part : stream.parts)
    (*stream.kinds)[part.kind].set_type(tensors.kind(part.tensor).sender(stream.step).type);
  stream.count_bytes();
}

bool has_short_runs(const MessageStream& stream) {
  Exchange exchange;
  add(exchange, stream);
  return exchange.bytes < exchange.runs * least_mean_run;
}

}  // namespace

std::vector<DirectPeer> take_direct_streams(RedistributionState& state) {
  const auto& memory = GroupAccess::runtime(state.group).node_memory;
  // Sums are formed in the order of the streams, but direct reads come in any order.
  if (memory == nullptr || state.tensors.have_sums()) return {};
  const std::int64_t self = state.group.rank_in_group().value(), ranks = state.group.size();
  // Two pieces for each peer take half of the memory at most.
  state.packed_piece = std::min(most_packed_piece, state.options.memory / (4 * ranks));
  if (state.packed_piece < least_packed_piece) return {};
  std::map<std::int64_t, Exchange> exchanges;  // by the distance from the sender to this rank
  const auto distance = [&](const MessageStream& stream) {
    return (self - stream.peer.value() + ranks) % ranks;
  };
  for (const auto* list : {&state.sent, &state.received})
    for (const MessageStream& stream : *list) add(exchanges[distance(stream)], stream);

  std::vector<DirectPeer> peers;
  for (const auto& [ahead, exchange] : exchanges) {
    const RankInGroup member{(self - ahead + ranks) % ranks};
    const auto local =
        memory->local_rank(GroupAccess::connection(state.group).group.ranks.at(member.value()));
    if (!local || exchange.bytes < least_bytes) continue;
    DirectPeer& peer = peers.emplace_back();
    peer.member = member;
    peer.local_rank = *local;
    const auto take = [&](std::vector<MessageStream>& from, std::array<MessageStream, 2>& to) {
      for (MessageStream& stream : from) {
        if (stream.peer != member) continue;
        set_types_of_sender(stream, state.tensors);
        to[static_cast<std::size_t>(stream.step)] = std::move(stream);
      }
      std::erase_if(from, [](const MessageStream& stream) { return stream.parts.empty(); });
    };
    take(state.sent, peer.sent);
    take(state.received, peer.received);
    std::ranges::transform(peer.sent, peer.has_short_runs.begin(), has_short_runs);
  }
  return peers;
}

}  // namespace rankmesh::exchange::detail

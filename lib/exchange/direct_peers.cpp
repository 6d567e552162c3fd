// SPDX-License-Identifier: BSD-3-Clause
// Chooses the pairs of ranks that read each other's memory.
#include "detail/direct_stream.hpp"

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

bool has_short_runs(const MessageStream& stream) {
  Exchange exchange;
  add(exchange, stream);
  return exchange.bytes < exchange.runs * least_mean_run;
}

}  // namespace

void take_direct_streams(RedistributionState& state) {
  const auto& memory = GroupAccess::runtime(state.group).node_memory;
  // Sums are formed in the order of the streams, but direct reads come in any order.
  if (memory == nullptr || state.tensors.have_sums()) return;
  // Two pieces for each peer take half of the memory at most.
  const std::int64_t piece =
      std::min(most_packed_piece, state.options.memory / (4 * state.group.size()));
  if (piece < least_packed_piece) return;
  std::map<RankInGroup, Exchange> exchanges;  // by the peer
  for (const auto* list : {&state.sent, &state.received})
    for (const MessageStream& stream : *list) add(exchanges[stream.peer], stream);

  const auto take = [&](std::vector<MessageStream>& from, std::vector<DirectStream>& to) {
    for (MessageStream& stream : from) {
      const auto local = memory->local_rank(
          GroupAccess::connection(state.group).group.ranks.at(stream.peer.value()));
      if (!local || exchanges[stream.peer].bytes < least_bytes) continue;
      // The receiver reads the elements as they lie in the sender's memory.
      for (const StreamPart& part : stream.parts)
        (*stream.kinds)[part.kind].set_type(
            state.tensors.kind(part.tensor).sender(stream.step).type);
      stream.count_bytes();
      const bool is_packed = has_short_runs(stream);
      to.push_back({std::move(stream), *local, is_packed, piece});
    }
    std::erase_if(from, [](const MessageStream& stream) { return stream.parts.empty(); });
  };
  take(state.sent, state.direct_sent);
  take(state.received, state.direct_received);
}

}  // namespace rankmesh::exchange::detail

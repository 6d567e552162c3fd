// SPDX-License-Identifier: BSD-3-Clause

#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

// Up to this size of a share, each carrier gets the partial results of all nodes and reduces them
// itself, which takes one round. Above this size, each carrier reduces a segment and sends the
// result to the other nodes. This takes two rounds, but sends fewer bytes, except with two nodes.
constexpr std::size_t one_round_bytes = 16 << 10;

bool takes_one_round(const Chunk& chunk) {
  return chunk.shape->node_count() == 2 || chunk.bytes(chunk.part) <= one_round_bytes;
}

// The segment of a share that the carrier on a node reduces.
Range segment_of(const Chunk& chunk, int node, std::int64_t count) {
  return shm::share_of(static_cast<std::size_t>(chunk.shape->node_count()),
                       static_cast<std::size_t>(node), count, chunk.type());
}

// The bytes between the segments that a carrier receives from the other nodes. Elements stay
// aligned.
std::size_t stride_of(const Chunk& chunk) {
  if (takes_one_round(chunk)) return chunk.bytes(chunk.part);
  constexpr std::size_t line = 64;
  const auto nodes = static_cast<std::size_t>(chunk.shape->node_count());
  return (chunk.bytes(chunk.part) / nodes / line + 3) * line;
}

void prepare_all_reduce(Chunk& chunk) {
  chunk.partial_bytes = chunk.bytes(chunk.part);
  chunk.received_bytes = stride_of(chunk) * static_cast<std::size_t>(chunk.shape->node_count());
}

// In one round, the segment of every node is the whole share.
bool exchange_all_reduce(Chunk& chunk, int round, PeerMessages& messages) {
  const Range own = chunk.own_share();
  chunk.result = shm::element(chunk.out, own.begin);
  const auto segment = [&](int node) {
    return takes_one_round(chunk) ? Range{0, own.count} : segment_of(chunk, node, own.count);
  };
  const Range mine = segment(chunk.own_node());
  const std::size_t stride = stride_of(chunk);
  if (round == 0) {
    chunk.for_other_nodes([&](int node) {
      const Range theirs = segment(node);
      messages.send(node, chunk.partial + chunk.bytes(theirs.begin), chunk.bytes(theirs.count));
      messages.receive(node, chunk.received() + static_cast<std::size_t>(node) * stride,
                       chunk.bytes(mine.count));
    });
    return true;
  }
  if (round == 2) return false;
  std::byte* const reduced = chunk.result + chunk.bytes(mine.begin);
  reduce_nodes(chunk, reduced, chunk.partial + chunk.bytes(mine.begin), chunk.received(), stride,
               mine.count);
  if (takes_one_round(chunk)) return false;
  chunk.for_other_nodes([&](int node) {
    const Range theirs = segment(node);
    messages.send(node, reduced, chunk.bytes(mine.count));
    messages.receive(node, chunk.result + chunk.bytes(theirs.begin), chunk.bytes(theirs.count));
  });
  return true;
}

}  // namespace

extern constexpr Plan all_reduce{
    .operation = Operation::all_reduce,
    .prepare = prepare_all_reduce,
    .collect = [](const Chunk& chunk) { return reduce_parts(chunk.carriers); },
    .exchange = exchange_all_reduce,
    .spread = [](const Chunk& chunk) { return spread_parts(chunk.carriers); },
};

}  // namespace rankmesh::levels

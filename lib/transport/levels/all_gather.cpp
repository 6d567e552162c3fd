// SPDX-License-Identifier: BSD-3-Clause
// all_gather and gather. Both collect blocks; only the members that get them differ.
#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

// Whether the carriers of this node carry blocks of other members.
bool collects(const Chunk& chunk) { return chunk.carriers < chunk.shape->neighbours(); }

void prepare_gather(Chunk& chunk) {
  chunk.partial_bytes = chunk.bytes(chunk.count * chunk.carried(chunk.carrier()));
}

const shm::Algorithm* collect_if_needed(const Chunk& chunk) {
  return collects(chunk) ? collect_blocks(chunk.carriers) : nullptr;
}

// In an all_gather, every carrier needs the blocks of the other nodes; in a gather, those on the
// node of the root.
bool exchange_blocks(Chunk& chunk, int round, PeerMessages& messages) {
  if (round == 1) return false;
  const auto needs_blocks = [&](int node) {
    return chunk.root_node < 0 || chunk.root_node == node;
  };
  const int self = chunk.own_node();
  chunk.result = chunk.partial;
  if (!collects(chunk))
    shm::copy_bytes(chunk.blocks_of(self), shm::element(chunk.in, chunk.begin),
                    chunk.bytes(chunk.count));
  chunk.for_other_nodes([&](int node) {
    if (needs_blocks(node)) messages.send(node, chunk.blocks_of(self), chunk.bytes_of(self));
    if (needs_blocks(self)) messages.receive(node, chunk.blocks_of(node), chunk.bytes_of(node));
  });
  return true;
}

}  // namespace

extern constexpr Plan all_gather{
    .operation = Operation::all_gather,
    .has_blocks_of_members = true,
    .prepare = prepare_gather,
    .collect = collect_if_needed,
    .exchange = exchange_blocks,
    .spread = [](const Chunk& chunk) { return spread_parts(chunk.carriers); },
};

extern constexpr Plan gather{
    .operation = Operation::gather,
    .has_blocks_of_members = true,
    .prepare = prepare_gather,
    .collect = collect_if_needed,
    .exchange = exchange_blocks,
    .spread = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() ? &parts_to_root : nullptr;
    },
};

}  // namespace rankmesh::levels

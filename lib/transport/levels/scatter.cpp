// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

void prepare_scatter(Chunk& chunk) {
  const int own = chunk.carrier();
  const int blocks =
      chunk.is_on_root_node() ? chunk.carried(own) : chunk.blocks(chunk.own_node(), own);
  chunk.partial_bytes = chunk.bytes(chunk.count * blocks);
}

bool exchange_scatter(Chunk& chunk, int round, PeerMessages& messages) {
  if (round == 1) return false;
  chunk.result = chunk.partial;
  if (!chunk.is_on_root_node()) {
    messages.receive(chunk.root_node, chunk.partial, chunk.bytes_of(chunk.own_node()));
    return true;
  }
  chunk.for_other_nodes(
      [&](int node) { messages.send(node, chunk.blocks_of(node), chunk.bytes_of(node)); });
  return true;
}

}  // namespace

extern constexpr Plan scatter{
    .operation = Operation::scatter,
    .has_blocks_of_members = true,
    .prepare = prepare_scatter,
    .collect = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() ? &take_blocks : nullptr;
    },
    .exchange = exchange_scatter,
    .spread = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() ? nullptr : hand_out_blocks(chunk.carriers);
    },
};

}  // namespace rankmesh::levels

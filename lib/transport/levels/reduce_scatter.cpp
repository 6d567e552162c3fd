// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

// Whether a carrier of this node carries blocks of other members.
bool hands_out(const Chunk& chunk) { return chunk.carriers < chunk.shape->neighbours(); }

void prepare_reduce_scatter(Chunk& chunk) {
  chunk.partial_bytes = chunk.bytes(chunk.count * chunk.carried(chunk.carrier()));
  chunk.received_bytes =
      chunk.bytes_of(chunk.own_node()) * static_cast<std::size_t>(chunk.shape->node_count());
  if (hands_out(chunk)) chunk.result_bytes = chunk.bytes_of(chunk.own_node());
}

bool exchange_reduce_scatter(Chunk& chunk, int round, PeerMessages& messages) {
  const int own = chunk.carrier();
  const int self = chunk.own_node();
  const std::size_t stride = chunk.bytes_of(chunk.own_node());
  if (round == 0) {
    chunk.for_other_nodes([&](int node) {
      messages.send(node, chunk.blocks_of(node), chunk.bytes_of(node));
      messages.receive(node, chunk.received() + static_cast<std::size_t>(node) * stride, stride);
    });
    return true;
  }
  chunk.result = hands_out(chunk) ? chunk.scratch_result() : shm::element(chunk.out, chunk.begin);
  reduce_nodes(chunk, chunk.result, chunk.blocks_of(self), chunk.received(), stride,
               chunk.count * chunk.blocks(self, own));
  return false;
}

}  // namespace

extern constexpr Plan reduce_scatter{
    .operation = Operation::reduce_scatter,
    .has_blocks_of_members = true,
    .prepare = prepare_reduce_scatter,
    .collect = [](const Chunk& chunk) { return reduce_parts(chunk.carriers); },
    .exchange = exchange_reduce_scatter,
    .spread = [](const Chunk& chunk) -> const shm::Algorithm* {
      return hands_out(chunk) ? hand_out_blocks(chunk.carriers) : nullptr;
    },
};

}  // namespace rankmesh::levels

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

void prepare_reduce(Chunk& chunk) {
  chunk.partial_bytes = chunk.bytes(chunk.part);
  if (!chunk.is_on_root_node()) return;
  chunk.received_bytes = chunk.partial_bytes * static_cast<std::size_t>(chunk.shape->node_count());
  chunk.result_bytes = chunk.partial_bytes;
}

bool exchange_reduce(Chunk& chunk, int round, PeerMessages& messages) {
  const Range own = chunk.own_share();
  const std::size_t bytes = chunk.bytes(own.count);
  const std::size_t stride = chunk.bytes(chunk.part);
  if (!chunk.is_on_root_node()) {
    if (round == 0) messages.send(chunk.root_node, chunk.partial, bytes);
    return round == 0;
  }
  if (round == 0) {
    chunk.for_other_nodes([&](int node) {
      messages.receive(node, chunk.received() + static_cast<std::size_t>(node) * stride, bytes);
    });
    return true;
  }
  chunk.result = chunk.is_root() ? shm::element(chunk.out, own.begin) : chunk.scratch_result();
  reduce_nodes(chunk, chunk.result, chunk.partial, chunk.received(), stride, own.count);
  return false;
}

}  // namespace

extern constexpr Plan reduce{
    .operation = Operation::reduce,
    .prepare = prepare_reduce,
    .collect = [](const Chunk& chunk) { return reduce_parts(chunk.carriers); },
    .exchange = exchange_reduce,
    .spread = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() && chunk.carriers > 1 ? &parts_to_root : nullptr;
    },
};

}  // namespace rankmesh::levels

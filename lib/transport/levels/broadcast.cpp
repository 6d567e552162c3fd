// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/steps.hpp"

namespace rankmesh::levels {
namespace {

// A binomial tree of the nodes, whose root is the node of the root. A node of the tree has the
// number of its parent plus one power of two. The output holds everything, so a carrier needs no
// scratch memory.
bool exchange_broadcast(Chunk& chunk, int round, PeerMessages& messages) {
  const int nodes = chunk.shape->node_count();
  const int number = (chunk.own_node() - chunk.root_node + nodes) % nodes;
  const auto node = [&](int k) { return (k + chunk.root_node) % nodes; };
  const Range own = chunk.own_share();
  chunk.result = shm::element(chunk.out, own.begin);
  if (round == 0 && number != 0) {
    messages.receive(node(number & (number - 1)), chunk.result, chunk.bytes(own.count));
    return true;
  }
  if (round > (number == 0 ? 0 : 1)) return false;
  const int lowest_bit = number == 0 ? nodes : number & -number;
  int distance = 1;
  while (2 * distance < lowest_bit && number + 2 * distance < nodes) distance *= 2;
  for (; distance > 0; distance /= 2)  // the largest part of the tree first
    if (distance < lowest_bit && number + distance < nodes)
      messages.send(node(number + distance), chunk.result, chunk.bytes(own.count));
  return true;
}

}  // namespace

extern constexpr Plan broadcast{
    .operation = Operation::broadcast,
    .collect = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() ? &spread_from_root : nullptr;
    },
    .exchange = exchange_broadcast,
    .spread = [](const Chunk& chunk) -> const shm::Algorithm* {
      return chunk.is_on_root_node() ? nullptr : spread_parts(chunk.carriers);
    },
};

}  // namespace rankmesh::levels

// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/plan.hpp"

namespace rankmesh::levels {
namespace {

using shm::Flow;

shm::Payload nothing(const shm::Group&, const Call&) { return {0, 1}; }

constexpr shm::Algorithm arrive{
    .name = "arrive",
    .operation = Operation::barrier,
    .payload = nothing,
    .first = {.flow = Flow::all_to_root},
};

constexpr shm::Algorithm release{
    .name = "release",
    .operation = Operation::barrier,
    .payload = nothing,
    .first = {.flow = Flow::root_to_all},
};

// In round k, each node tells the node 2^k after it that 2^k nodes have arrived (dissemination).
bool exchange_barrier(Chunk& chunk, int round, PeerMessages& messages) {
  const int nodes = chunk.shape->node_count();
  const int self = chunk.own_node();
  const int distance = 1 << round;
  if (distance >= nodes) return false;
  messages.send((self + distance) % nodes, nullptr, 0);
  messages.receive((self - distance + nodes) % nodes, nullptr, 0);
  return true;
}

}  // namespace

extern constexpr Plan barrier{
    .operation = Operation::barrier,
    .collect = [](const Chunk&) -> const shm::Algorithm* { return &arrive; },
    .exchange = exchange_barrier,
    .spread = [](const Chunk&) -> const shm::Algorithm* { return &release; },
};

}  // namespace rankmesh::levels

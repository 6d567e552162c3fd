// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/scheme.hpp"

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
bool exchange_barrier(Piece& piece, int round, Messages& messages) {
  const int nodes = piece.shape->node_count();
  const int self = piece.shape->own().node;
  const int distance = 1 << round;
  if (distance >= nodes) return false;
  messages.send((self + distance) % nodes, nullptr, 0);
  messages.receive((self - distance + nodes) % nodes, nullptr, 0);
  return true;
}

}  // namespace

extern constexpr Scheme barrier{
    .operation = Operation::barrier,
    .division = Division::none,
    .prepare = [](Piece&) {},
    .collect = [](const Piece&) -> const shm::Algorithm* { return &arrive; },
    .exchange = exchange_barrier,
    .spread = [](const Piece&) -> const shm::Algorithm* { return &release; },
};

}  // namespace rankmesh::levels

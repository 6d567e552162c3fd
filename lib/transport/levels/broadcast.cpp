// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/scheme.hpp"
#include "transport/levels/shares.hpp"

namespace rankmesh::levels {
namespace {

void prepare_broadcast(Piece&) {}  // the output holds everything

// A binomial tree of the nodes, whose root is the node of the root. A node of the tree has the
// number of its parent plus one power of two.
bool exchange_broadcast(Piece& piece, int round, Messages& messages) {
  const int nodes = piece.shape->node_count();
  const int number = (piece.shape->own().node - piece.root_node + nodes) % nodes;
  const auto node = [&](int k) { return (k + piece.root_node) % nodes; };
  const Piece::Range own = piece.share_of(piece.carrier());
  piece.result = shm::element(piece.out, piece.begin + own.begin);
  if (round == 0 && number != 0) {
    messages.receive(node(number & (number - 1)), piece.result, piece.bytes(own.count));
    return true;
  }
  if (round > (number == 0 ? 0 : 1)) return false;
  const int lowest_bit = number == 0 ? nodes : number & -number;
  int distance = 1;
  while (2 * distance < lowest_bit && number + 2 * distance < nodes) distance *= 2;
  for (; distance > 0; distance /= 2)  // the largest part of the tree first
    if (distance < lowest_bit && number + distance < nodes)
      messages.send(node(number + distance), piece.result, piece.bytes(own.count));
  return true;
}

}  // namespace

extern constexpr Scheme broadcast{
    .operation = Operation::broadcast,
    .division = Division::shares,
    .prepare = prepare_broadcast,
    .collect = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() ? &spread_from_root : nullptr;
    },
    .exchange = exchange_broadcast,
    .spread = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() ? nullptr : &spread_shares(piece.carriers);
    },
};

}  // namespace rankmesh::levels

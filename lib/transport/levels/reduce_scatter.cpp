// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/blocks.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {
namespace {

// Whether a carrier of this node carries blocks of other members.
bool hands_out(const Piece& piece) { return piece.carriers < piece.shape->neighbours(); }

std::size_t own_bytes(const Piece& piece) {
  return piece.bytes(piece.count * piece.blocks(piece.shape->own().node, piece.carrier()));
}

void prepare_reduce_scatter(Piece& piece) {
  const int own = piece.carrier();
  piece.partial_bytes = piece.bytes(piece.count * piece.all_blocks(own));
  piece.received_bytes = own_bytes(piece) * static_cast<std::size_t>(piece.shape->node_count());
  if (hands_out(piece)) piece.result_bytes = own_bytes(piece);
}

// If a member has no other members on its node, and its input is not in the order of the nodes, the
// input is copied.
void copy_input(Piece& piece) {
  int k = 0;
  for (int node = 0; node < piece.shape->node_count(); ++node)
    for (int i = 0; i < piece.blocks(node, 0); ++i)
      shm::copy_bytes(
          piece.scratch_partial() + piece.bytes(k++ * piece.count),
          shm::element(piece.in, piece.member_of_block(node, 0, i) * piece.out.count + piece.begin),
          piece.bytes(piece.count));
}

bool exchange_reduce_scatter(Piece& piece, int round, Messages& messages) {
  const int own = piece.carrier();
  const int self = piece.shape->own().node;
  const std::size_t stride = own_bytes(piece);
  const auto partial = [&](int node) {
    return piece.scratch_partial() + piece.bytes(piece.count * piece.first_block(node, own));
  };
  if (round == 0) {
    if (piece.shape->neighbours() == 1) copy_input(piece);
    piece.result = hands_out(piece) ? piece.scratch_result() : shm::element(piece.out, piece.begin);
    for (int node = 0; node < piece.shape->node_count(); ++node) {
      if (node == self) continue;
      messages.send(node, partial(node), piece.bytes(piece.count * piece.blocks(node, own)));
      messages.receive(node, piece.received() + static_cast<std::size_t>(node) * stride, stride);
    }
    return true;
  }
  reduce_nodes(piece, piece.result, partial(self), piece.received(), stride,
               piece.count * piece.blocks(self, own));
  return false;
}

}  // namespace

extern constexpr Scheme reduce_scatter{
    .operation = Operation::reduce_scatter,
    .division = Division::blocks,
    .prepare = prepare_reduce_scatter,
    .collect = [](const Piece& piece) { return &reduce_blocks(piece.carriers); },
    .exchange = exchange_reduce_scatter,
    .spread = [](const Piece& piece) -> const shm::Algorithm* {
      return hands_out(piece) ? &hand_out_blocks(piece.carriers) : nullptr;
    },
};

}  // namespace rankmesh::levels

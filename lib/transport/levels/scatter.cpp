// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/blocks.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {
namespace {

void prepare_scatter(Piece& piece) {
  const int own = piece.carrier();
  const int blocks =
      piece.is_on_root_node() ? piece.all_blocks(own) : piece.blocks(piece.shape->own().node, own);
  piece.partial_bytes = piece.bytes(piece.count * blocks);
}

// A root without other members on its node takes all blocks from its input.
void take_input(const Piece& piece) {
  int k = 0;
  for (int node = 0; node < piece.shape->node_count(); ++node)
    for (int i = 0; i < piece.blocks(node, 0); ++i)
      shm::copy_bytes(
          piece.scratch_partial() + piece.bytes(k++ * piece.count),
          shm::element(piece.in, piece.member_of_block(node, 0, i) * piece.out.count + piece.begin),
          piece.bytes(piece.count));
  shm::copy_bytes(shm::element(piece.out, piece.begin),
                  shm::element(piece.in, piece.shape->self * piece.out.count + piece.begin),
                  piece.bytes(piece.count));
}

bool exchange_scatter(Piece& piece, int round, Messages& messages) {
  const int own = piece.carrier();
  const bool is_alone = piece.shape->neighbours() == 1;
  const auto bytes_of = [&](int node) {
    return piece.bytes(piece.count * piece.blocks(node, own));
  };
  piece.result = piece.scratch_partial();
  if (piece.is_on_root_node()) {
    if (round == 1) return false;
    if (is_alone) take_input(piece);
    for (int node = 0; node < piece.shape->node_count(); ++node)
      if (node != piece.root_node)
        messages.send(
            node, piece.scratch_partial() + piece.bytes(piece.count * piece.first_block(node, own)),
            bytes_of(node));
    return true;
  }
  if (round == 0) {
    messages.receive(piece.root_node, piece.scratch_partial(), bytes_of(piece.shape->own().node));
    return true;
  }
  if (is_alone)
    shm::copy_bytes(shm::element(piece.out, piece.begin), piece.scratch_partial(),
                    piece.bytes(piece.count));
  return false;
}

}  // namespace

extern constexpr Scheme scatter{
    .operation = Operation::scatter,
    .division = Division::blocks,
    .prepare = prepare_scatter,
    .collect = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() ? &take_blocks : nullptr;
    },
    .exchange = exchange_scatter,
    .spread = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() ? nullptr : &hand_out_blocks(piece.carriers);
    },
};

}  // namespace rankmesh::levels

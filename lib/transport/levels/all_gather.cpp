// SPDX-License-Identifier: BSD-3-Clause
// all_gather and gather. Both collect blocks; only the members that get them differ.
#include "transport/levels/blocks.hpp"
#include "transport/levels/scheme.hpp"

namespace rankmesh::levels {
namespace {

// Whether the carriers of this node carry blocks of other members.
bool collects(const Piece& piece) { return piece.carriers < piece.shape->neighbours(); }

void prepare_gather(Piece& piece) {
  piece.partial_bytes = piece.bytes(piece.count * piece.all_blocks(piece.carrier()));
}

std::byte* blocks_of(const Piece& piece, int node) {
  return piece.scratch_partial() +
         piece.bytes(piece.count * piece.first_block(node, piece.carrier()));
}
std::size_t bytes_of(const Piece& piece, int node) {
  return piece.bytes(piece.count * piece.blocks(node, piece.carrier()));
}

const shm::Algorithm* collect_if_needed(const Piece& piece) {
  return collects(piece) ? &collect_blocks(piece.carriers) : nullptr;
}

void take_own_block(const Piece& piece) {
  if (!collects(piece))
    shm::copy_bytes(blocks_of(piece, piece.shape->own().node), shm::element(piece.in, piece.begin),
                    piece.bytes(piece.count));
}

// A member without other members on its node has all blocks, and needs no step in shared memory.
void deliver_alone(const Piece& piece) {
  if (piece.shape->neighbours() > 1) return;
  int k = 0;
  for (int node = 0; node < piece.shape->node_count(); ++node)
    for (int i = 0; i < piece.blocks(node, piece.carrier()); ++i)
      shm::copy_bytes(
          shm::element(piece.out, piece.member_of_block(node, piece.carrier(), i) * piece.in.count +
                                      piece.begin),
          piece.scratch_partial() + piece.bytes(k++ * piece.count), piece.bytes(piece.count));
}

bool exchange_all(Piece& piece, int round, Messages& messages) {
  if (round == 1) {
    deliver_alone(piece);
    return false;
  }
  take_own_block(piece);
  const int self = piece.shape->own().node;
  for (int node = 0; node < piece.shape->node_count(); ++node) {
    if (node == self) continue;
    messages.send(node, blocks_of(piece, self), bytes_of(piece, self));
    messages.receive(node, blocks_of(piece, node), bytes_of(piece, node));
  }
  return true;
}

bool exchange_to_root(Piece& piece, int round, Messages& messages) {
  const int self = piece.shape->own().node;
  if (round == 1) {
    if (self == piece.root_node) deliver_alone(piece);
    return false;
  }
  take_own_block(piece);
  if (self != piece.root_node) {
    messages.send(piece.root_node, blocks_of(piece, self), bytes_of(piece, self));
    return true;
  }
  for (int node = 0; node < piece.shape->node_count(); ++node)
    if (node != self) messages.receive(node, blocks_of(piece, node), bytes_of(piece, node));
  return true;
}

}  // namespace

extern constexpr Scheme all_gather{
    .operation = Operation::all_gather,
    .division = Division::blocks,
    .prepare = prepare_gather,
    .collect = collect_if_needed,
    .exchange = exchange_all,
    .spread = [](const Piece& piece) { return &spread_blocks(piece.carriers); },
};

extern constexpr Scheme gather{
    .operation = Operation::gather,
    .division = Division::blocks,
    .prepare = prepare_gather,
    .collect = collect_if_needed,
    .exchange = exchange_to_root,
    .spread = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() ? &blocks_to_root : nullptr;
    },
};

}  // namespace rankmesh::levels

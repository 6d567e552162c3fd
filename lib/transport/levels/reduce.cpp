// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/scheme.hpp"
#include "transport/levels/shares.hpp"

namespace rankmesh::levels {
namespace {

void prepare_reduce(Piece& piece) {
  piece.partial_bytes = piece.bytes(piece.share);
  if (!piece.is_on_root_node()) return;
  piece.received_bytes = piece.partial_bytes * static_cast<std::size_t>(piece.shape->node_count());
  piece.result_bytes = piece.partial_bytes;
}

bool exchange_reduce(Piece& piece, int round, Messages& messages) {
  const Piece::Range own = piece.share_of(piece.carrier());
  const std::size_t bytes = piece.bytes(own.count);
  const std::size_t stride = piece.bytes(piece.share);
  if (round == 0) {
    const bool is_alone = piece.shape->neighbours() == 1;
    piece.partial =
        is_alone ? shm::element(piece.in, piece.begin + own.begin) : piece.scratch_partial();
    piece.result =
        piece.is_root() ? shm::element(piece.out, piece.begin + own.begin) : piece.scratch_result();
    if (!piece.is_on_root_node()) {
      messages.send(piece.root_node, piece.partial, bytes);
      return true;
    }
    for (int node = 0; node < piece.shape->node_count(); ++node)
      if (node != piece.root_node)
        messages.receive(node, piece.received() + static_cast<std::size_t>(node) * stride, bytes);
    return true;
  }
  if (piece.is_on_root_node())
    reduce_nodes(piece, piece.result, piece.partial, piece.received(), stride, own.count);
  return false;
}

}  // namespace

extern constexpr Scheme reduce{
    .operation = Operation::reduce,
    .division = Division::shares,
    .prepare = prepare_reduce,
    .collect = [](const Piece& piece) { return &reduce_shares(piece.carriers); },
    .exchange = exchange_reduce,
    .spread = [](const Piece& piece) -> const shm::Algorithm* {
      return piece.is_on_root_node() && piece.carriers > 1 ? &shares_to_root : nullptr;
    },
};

}  // namespace rankmesh::levels

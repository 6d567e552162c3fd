// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "transport/levels/scheme.hpp"
#include "transport/levels/shares.hpp"

namespace rankmesh::levels {
namespace {

// Up to this size of a share, each carrier gets the partial results of all nodes and reduces them
// itself, which takes one round. Above this size, each carrier reduces a part and sends the result
// to the other nodes. This takes two rounds, but sends fewer bytes, except with two nodes.
constexpr std::size_t one_round_bytes = 16 << 10;

bool takes_one_round(const Piece& piece) {
  return piece.shape->node_count() == 2 || piece.bytes(piece.share) <= one_round_bytes;
}

// The part of a share that the carrier on a node reduces. Parts consist of whole cache lines.
Piece::Range part_of(const Piece& piece, int node, std::int64_t count) {
  const auto per_line = static_cast<std::int64_t>(64 / piece.element_bytes());
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const auto edge = [&](int k) {
    return std::min(count, lines * k / piece.shape->node_count() * per_line);
  };
  return {edge(node), edge(node + 1) - edge(node)};
}

// The bytes between the parts that a carrier receives from the other nodes.
std::size_t stride_of(const Piece& piece) {
  if (takes_one_round(piece)) return piece.bytes(piece.share);
  return piece.bytes(piece.share) / static_cast<std::size_t>(piece.shape->node_count()) + 128;
}

void prepare_all_reduce(Piece& piece) {
  piece.partial_bytes = piece.bytes(piece.share);
  piece.received_bytes = stride_of(piece) * static_cast<std::size_t>(piece.shape->node_count());
}

template <class Action>
void for_other_nodes(const Piece& piece, Action&& action) {
  for (int node = 0; node < piece.shape->node_count(); ++node)
    if (node != piece.shape->own().node) action(node);
}

bool exchange_all_reduce(Piece& piece, int round, Messages& messages) {
  const Piece::Range own = piece.share_of(piece.carrier());
  const int self = piece.shape->own().node;
  const std::size_t stride = stride_of(piece);
  const auto received_from = [&](int node) {
    return piece.received() + static_cast<std::size_t>(node) * stride;
  };
  if (round == 0) {
    const bool is_alone = piece.shape->neighbours() == 1;
    piece.partial =
        is_alone ? shm::element(piece.in, piece.begin + own.begin) : piece.scratch_partial();
    piece.result = shm::element(piece.out, piece.begin + own.begin);
  }
  if (takes_one_round(piece)) {
    if (round == 0) {
      for_other_nodes(piece, [&](int node) {
        messages.send(node, piece.partial, piece.bytes(own.count));
        messages.receive(node, received_from(node), piece.bytes(own.count));
      });
      return true;
    }
    reduce_nodes(piece, piece.result, piece.partial, piece.received(), stride, own.count);
    return false;
  }
  const Piece::Range mine = part_of(piece, self, own.count);
  if (round == 0) {
    for_other_nodes(piece, [&](int node) {
      const Piece::Range theirs = part_of(piece, node, own.count);
      messages.send(node, piece.partial + piece.bytes(theirs.begin), piece.bytes(theirs.count));
      messages.receive(node, received_from(node), piece.bytes(mine.count));
    });
    return true;
  }
  if (round == 1) {
    std::byte* const reduced = piece.result + piece.bytes(mine.begin);
    reduce_nodes(piece, reduced, piece.partial + piece.bytes(mine.begin), piece.received(), stride,
                 mine.count);
    for_other_nodes(piece, [&](int node) {
      const Piece::Range theirs = part_of(piece, node, own.count);
      messages.send(node, reduced, piece.bytes(mine.count));
      messages.receive(node, piece.result + piece.bytes(theirs.begin), piece.bytes(theirs.count));
    });
    return true;
  }
  return false;
}

}  // namespace

extern constexpr Scheme all_reduce{
    .operation = Operation::all_reduce,
    .division = Division::shares,
    .prepare = prepare_all_reduce,
    .collect = [](const Piece& piece) { return &reduce_shares(piece.carriers); },
    .exchange = exchange_all_reduce,
    .spread = [](const Piece& piece) { return &spread_shares(piece.carriers); },
};

}  // namespace rankmesh::levels

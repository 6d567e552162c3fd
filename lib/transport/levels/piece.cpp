// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/piece.hpp"

#include <algorithm>
#include <vector>

#include "transport/detail/reduce_kernels.hpp"

namespace rankmesh::levels {

Piece::Range Piece::part(int carrier, std::int64_t at, std::int64_t most) const {
  const std::int64_t end = std::min((carrier + 1) * share, count);
  const std::int64_t from = std::min(carrier * share + at, end);
  return {from, std::min(most, end - from)};
}

int Piece::first_block(int node, int carrier) const {
  int sum = 0;
  for (int before = 0; before < node; ++before) sum += blocks(before, carrier);
  return sum;
}

void reduce_nodes(const Piece& piece, std::byte* out, const std::byte* own,
                  const std::byte* received, std::size_t stride, std::int64_t count) {
  if (count == 0) return;
  const int nodes = piece.shape->node_count();
  std::vector<const std::byte*> sources;
  for (int node = 0; node < nodes; ++node)
    sources.push_back(
        node == piece.shape->own().node ? own : received + static_cast<std::size_t>(node) * stride);
  const bool is_average = piece.reduction == ReduceOp::avg;
  detail::reduce(piece.type(), is_average ? ReduceOp::sum : piece.reduction, out, sources.data(),
                 nodes, count);
  if (is_average) detail::divide(piece.type(), out, count, piece.shape->size());
}

}  // namespace rankmesh::levels

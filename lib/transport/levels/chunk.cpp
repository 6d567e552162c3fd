// SPDX-License-Identifier: BSD-3-Clause
#include "transport/levels/chunk.hpp"

#include <algorithm>
#include <vector>

#include "transport/detail/reduce_kernels.hpp"

namespace rankmesh::levels {

Range Chunk::range(int of_part, std::int64_t at, std::int64_t most) const {
  if (has_blocks_of_members) return {of_part * block + begin + at, std::min(most, part - at)};
  const std::int64_t end = std::min((of_part + 1) * part, count);
  const std::int64_t from = std::min(of_part * part + at, end);
  return {begin + from, std::min(most, end - from)};
}

int Chunk::first_block(int node, int carrier) const {
  int sum = 0;
  for (int before = 0; before < node; ++before) sum += blocks(before, carrier);
  return sum;
}

void reduce_nodes(const Chunk& chunk, std::byte* out, const std::byte* own,
                  const std::byte* received, std::size_t stride, std::int64_t count) {
  if (count == 0) return;
  const int nodes = chunk.shape->node_count();
  std::vector<const std::byte*> sources;
  for (int node = 0; node < nodes; ++node)
    sources.push_back(
        node == chunk.own_node() ? own : received + static_cast<std::size_t>(node) * stride);
  detail::reduce(chunk.type(), partial_reduction(chunk.reduction), out, sources.data(), nodes,
                 count);
  if (chunk.reduction == ReduceOp::avg)
    detail::divide(chunk.type(), out, count, chunk.shape->size());
}

}  // namespace rankmesh::levels

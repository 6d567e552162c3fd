// SPDX-License-Identifier: BSD-3-Clause
#include "detail/strided_runs.hpp"

namespace rankmesh::detail {
namespace {

// Returns the number of equal outermost loops.
std::size_t common_loops(const TransferBlock& a, const TransferBlock& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a.loops, b.loops).in1 - a.loops.begin());
}

}  // namespace

StridedRuns::StridedRuns(std::span<const TransferBlock> blocks) {
  std::int64_t first = 0;
  for (std::size_t begin = 0, end = 0; begin < blocks.size(); begin = end) {
    std::int64_t elements = blocks[begin].element_count();
    std::size_t outer = 0;
    for (end = begin + 1; elements > 0 && end < blocks.size(); ++end) {
      const std::int64_t next = blocks[end].element_count();
      const std::size_t common = common_loops(blocks[begin], blocks[end]);
      if (end == begin + 1) outer = common;
      if (next == 0 || outer == 0 || common < outer) break;
      elements += next;
    }
    if (end == begin + 1) outer = 0;
    if (elements == 0) continue;
    groups_.push_back({blocks.subspan(begin, end - begin), outer, first, elements});
    first += elements;
  }
}

void ArrayGaps::set(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  block_.clear();
  if (strides.empty()) return;
  std::int64_t dense = 1;
  std::size_t axis = shape.size();
  while (axis > 0 && (strides[axis - 1] == dense || shape[axis - 1] == 1)) dense *= shape[--axis];
  if (axis == 0) return;
  TransferBlock& block = block_.emplace_back();
  block.length = dense;
  block.loops.resize(axis);
  for (; axis > 0; dense *= shape[--axis])
    block.loops[axis - 1] = {shape[axis - 1], strides[axis - 1], dense};
  runs_ = StridedRuns{block_};
}

}  // namespace rankmesh::detail

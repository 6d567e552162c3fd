// SPDX-License-Identifier: BSD-3-Clause
#include "detail/common_blocks.hpp"

#include <algorithm>

namespace rankmesh {

std::int64_t TransferBlock::element_count() const {
  std::int64_t count = length;
  for (const TransferLoop& loop : loops) count *= loop.count;
  return count;
}

namespace detail {
namespace {

// Merges loops that continue each other, and removes loops of one repetition.
void simplify(TransferBlock& block) {
  std::vector<TransferLoop> loops;  // the innermost first
  for (std::size_t i = block.loops.size(); i-- > 0;) {
    const TransferLoop& loop = block.loops[i];
    if (loop.count == 1) continue;
    if (loops.empty() && loop.source_stride == block.length && loop.target_stride == block.length)
      block.length *= loop.count;
    else if (!loops.empty() &&
             loop.source_stride == loops.back().count * loops.back().source_stride &&
             loop.target_stride == loops.back().count * loops.back().target_stride)
      loops.back().count *= loop.count;
    else
      loops.push_back(loop);
  }
  block.loops.assign(loops.rbegin(), loops.rend());
}

class Boxes {
 public:
  Boxes(std::span<const CommonAxis> axes, std::vector<TransferBlock>& blocks)
      : axes_{axes}, blocks_{blocks}, ranges_(axes.size()), strides_(axes.size()) {
    std::int64_t source = 1;
    std::int64_t target = 1;
    for (std::size_t a = axes.size(); a-- > 0;) {
      strides_[a] = {1, source, target};
      source *= axes[a].holder->count;
      target *= axes[a].receiver->count;
    }
  }

  // Divides the elements from `begin` to `end` of the axes from `axis` on into boxes. The ranges of
  // the axes before are set.
  void divide(std::size_t axis, std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    if (axis == axes_.size()) {
      add_box();
      return;
    }
    std::int64_t inner = 1;  // the elements below one index of the axis
    for (std::size_t a = axis + 1; a < axes_.size(); ++a) inner *= axes_[a].count;
    std::int64_t first = begin / inner;
    const std::int64_t last = end / inner;
    if (first == last) return below(axis, first, begin % inner, end % inner);
    if (begin % inner != 0) below(axis, first++, begin % inner, inner);
    if (first < last) {
      ranges_[axis] = {first, last - first};
      divide(axis + 1, 0, inner);
    }
    if (end % inner != 0) below(axis, last, 0, end % inner);
  }

 private:
  void below(std::size_t axis, std::int64_t index, std::int64_t begin, std::int64_t end) {
    ranges_[axis] = {index, 1};
    divide(axis + 1, begin, end);
  }

  // A box is the product of runs of each axis.
  void add_box() {
    std::vector<std::vector<Strip>> runs;
    for (std::size_t a = 0; a < axes_.size(); ++a)
      runs.push_back(common_runs(*axes_[a].source, *axes_[a].holder, *axes_[a].target,
                                 *axes_[a].receiver, ranges_[a].first, ranges_[a].end()));
    std::vector<std::size_t> chosen(axes_.size(), 0);
    for (;;) {
      TransferBlock block{.length = 1};
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        const Strip& run = runs[a][chosen[a]];
        const TransferLoop& stride = strides_[a];
        block.source += run.source * stride.source_stride;
        block.target += run.target * stride.target_stride;
        block.loops.push_back({run.count, run.source_step * stride.source_stride,
                               run.target_step * stride.target_stride});
        block.loops.push_back({run.length, stride.source_stride, stride.target_stride});
      }
      simplify(block);
      blocks_.push_back(std::move(block));
      std::size_t a = axes_.size();
      while (a > 0 && ++chosen[a - 1] == runs[a - 1].size()) chosen[--a] = 0;
      if (a == 0) return;
    }
  }

  std::span<const CommonAxis> axes_;
  std::vector<TransferBlock>& blocks_;
  std::vector<IndexRange> ranges_;
  std::vector<TransferLoop> strides_;  // of the local arrays
};

}  // namespace

void append_blocks(std::span<const CommonAxis> axes, std::int64_t begin, std::int64_t end,
                   std::vector<TransferBlock>& blocks) {
  Boxes{axes, blocks}.divide(0, begin, end);
}

}  // namespace detail
}  // namespace rankmesh

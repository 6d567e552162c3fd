// SPDX-License-Identifier: BSD-3-Clause
// Computes what a rank receives from a cell, without enumerating the needs of all other ranks.
#include <algorithm>

#include "detail/pair_plan.hpp"

namespace rankmesh::detail {
namespace {

// The elements that need not be sent to a holder of the cell.
struct Kept {
  Classes target;
  Rank holder;
  std::int64_t count;
};

// Calls `take(sender, begin, end)` for those parts of a line of `all` elements that each of
// `senders` sends, and that are between `begin` and `end`. The first senders send one more.
template <class Take>
void for_each_sender(std::int64_t all, std::int64_t senders, std::int64_t begin, std::int64_t end,
                     const Take& take) {
  const std::int64_t each = all / senders;
  const std::int64_t rest = all % senders;
  std::int64_t sender = begin < rest * (each + 1) ? begin / (each + 1) : (begin - rest) / each;
  for (; begin < end; ++sender) {
    const std::int64_t last = std::min(end, (sender + 1) * each + std::min(sender + 1, rest));
    take(sender, begin, last);
    begin = last;
  }
}

}  // namespace

// The needs of a cell form a line: first the needs of its first target, one receiver after the
// other, then the needs of its second target, and so on. The line is cut into one piece for each
// holder. Its length, and the place of a need in it, follow from sums along each axis.
std::vector<Shipment> PairPlan::stripes(const CellPlan& cell, Rank receiver,
                                        std::span<const std::int64_t> ahead) const {
  std::int64_t all = receivers_.replica_count();
  for (std::size_t a = 0; a < cell.source.size(); ++a) {
    const CommonIndices& last =
        overlaps_[a].targets_of[static_cast<std::size_t>(cell.source[a])].back();
    all *= last.needed_before + last.needed;
  }
  std::vector<Kept> kept;
  for (const Rank holder : cell.holders)
    for_each_cell_of(to_, holder, [&](const Classes& target) {
      std::int64_t count = 1;
      for (std::size_t a = 0; a < target.size(); ++a) count *= common(a, cell.source[a], target[a]);
      if (count == 0) return;
      kept.push_back({target, holder, count});
      all -= count;
    });

  std::vector<Shipment> result;
  for (std::size_t t = 0; t < cell.targets.size(); ++t) {
    const CellTarget& target = cell.targets[t];
    // The needs of earlier targets: those that differ first along each axis.
    std::int64_t begin = 0;
    std::int64_t equal = receivers_.replica_count();
    for (std::size_t a = 0; a < target.cell.size(); ++a) {
      const CommonIndices& common = *find_common(a, cell.source[a], target.cell[a]);
      std::int64_t differing = equal * common.needed_before;
      for (std::size_t b = a + 1; b < target.cell.size(); ++b) {
        const CommonIndices& last =
            overlaps_[b].targets_of[static_cast<std::size_t>(cell.source[b])].back();
        differing *= last.needed_before + last.needed;
      }
      begin += differing;
      equal *= common.needed;
    }
    begin += ahead[t] * target.count;
    for (const Kept& k : kept)
      if (k.target < target.cell || (k.target == target.cell && k.holder < receiver))
        begin -= k.count;
    for_each_sender(all, std::ssize(cell.holders), begin, begin + target.count,
                    [&](std::int64_t sender, std::int64_t first, std::int64_t last) {
                      result.push_back({cell.holders[static_cast<std::size_t>(sender)], receiver, t,
                                        first - begin, last - begin});
                    });
  }
  return result;
}

}  // namespace rankmesh::detail

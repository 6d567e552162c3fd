// SPDX-License-Identifier: BSD-3-Clause
#include "detail/axis_shares.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/detail/text.hpp"

namespace rankmesh::detail {
namespace {

void append_range(std::vector<IndexRange>& ranges, IndexRange range) {
  if (!ranges.empty() && ranges.back().end() == range.first)
    ranges.back().count += range.count;
  else
    ranges.push_back(range);
}

// Indices in any order. Consecutive indices that are neighbours in the sequence form one range.
class IndexSequence {
 public:
  void append(IndexRange range) {
    if (range.count == 0) return;
    append_range(ranges_, range);
    if (ends_.size() < ranges_.size()) ends_.push_back(size());
    ends_.back() += range.count;
  }
  // Appends the entries from `begin` to `begin + count` of another sequence.
  void append(const IndexSequence& other, std::int64_t begin, std::int64_t count) {
    if (count == 0) return;
    auto at = static_cast<std::size_t>(std::ranges::upper_bound(other.ends_, begin) -
                                       other.ends_.begin());
    while (count > 0) {
      const IndexRange& range = other.ranges_[at];
      const std::int64_t skipped = begin - (other.ends_[at] - range.count);
      const std::int64_t taken = std::min(count, range.count - skipped);
      append({range.first + skipped, taken});
      begin += taken;
      count -= taken;
      ++at;
    }
  }
  [[nodiscard]] std::int64_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] const std::vector<IndexRange>& ranges() const { return ranges_; }

 private:
  std::vector<IndexRange> ranges_;
  std::vector<std::int64_t> ends_;  // the number of indices up to and with each range
};

// The sums of the first sizes of a split: none of them, one, and so on. Sums that overflow stay at
// the greatest number.
std::vector<std::int64_t> sums_of_sizes(const AxisSplit& split) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t size : split.sizes)
    sums.push_back(sums.back() + std::min(size, INT64_MAX - sums.back()));
  return sums;
}

// The entries of a sequence of `count` indices that a coordinate has.
std::vector<IndexRange> share_of(const AxisSplit& split, const std::vector<std::int64_t>& sums,
                                 std::int64_t count, std::int64_t size, std::int64_t coordinate,
                                 const Refuse& refuse) {
  switch (split.rule) {
    case ShareRule::even: {
      const std::int64_t first = coordinate * (count / size) + std::min(coordinate, count % size);
      return {{first, count / size + (coordinate < count % size ? 1 : 0)}};
    }
    case ShareRule::ceiling: {
      const std::int64_t most = count / size + (count % size != 0 ? 1 : 0);
      // The product does not overflow unless the share is empty.
      if (most != 0 && coordinate > (count - 1) / most) return {};
      return {{coordinate * most, std::min(most, count - coordinate * most)}};
    }
    case ShareRule::sizes: {
      if (sums.back() != count)
        refuse(split.position,
               fmt::format("the sizes along '{}' add up to {} instead of {}", split.dimension,
                           sums.back(), count),
               "give one size per coordinate, for all indices that are divided");
      const auto c = static_cast<std::size_t>(coordinate);
      return {{sums[c], split.sizes[c]}};
    }
    case ShareRule::cyclic: {
      std::vector<IndexRange> result;
      const std::int64_t blocks = count / split.block + (count % split.block != 0 ? 1 : 0);
      if (blocks > most_runs)
        refuse(split.position,
               fmt::format("'{}' deals {} blocks, more than the limit of {}", split.dimension,
                           blocks, most_runs),
               "use larger blocks");
      for (std::int64_t b = coordinate; b < blocks; b += size)
        result.push_back({b * split.block, std::min(split.block, count - b * split.block)});
      return result;
    }
    case ShareRule::lists:
      break;
  }
  const auto& list = split.lists[static_cast<std::size_t>(coordinate)];
  for (const IndexRange& range : list)
    if (range.end() > count)
      refuse(
          split.position,
          fmt::format("the list of coordinate {} along '{}' contains {}: the greatest index is {}",
                      coordinate, split.dimension, range.end() - 1, count - 1),
          "indices are numbered from 0, inside what is divided");
  return list;
}

// Fills the runs of a share from the indices in the order of the memory.
AxisShare to_share(const IndexSequence& indices, const AxisSegment& segment, const Refuse& refuse) {
  AxisShare share;
  share.runs.reserve(indices.ranges().size());
  for (const IndexRange& range : indices.ranges()) {
    share.runs.push_back({range.first, share.count, range.count});
    share.count += range.count;
  }
  share.by_global = share.runs;
  std::ranges::sort(share.by_global, {}, &AxisRun::global);
  for (std::size_t i = 1; i < share.by_global.size(); ++i) {
    const AxisRun& before = share.by_global[i - 1];
    if (before.global + before.count > share.by_global[i].global)
      refuse(segment.splits.empty() ? 0 : segment.splits.front().position,
             fmt::format("a rank would have the index {} twice", share.by_global[i].global),
             "name each index once per coordinate, and let segments not overlap");
  }
  return share;
}

struct Owned {
  IndexRange range;
  std::int64_t share;
};

// Sorts the indices by the sets of shares that have them.
void classify(AxisShares& axis) {
  std::vector<Owned> owned;
  std::vector<std::int64_t> bounds;
  for (std::size_t s = 0; s < axis.shares.size(); ++s)
    for (const AxisRun& run : axis.shares[s].by_global) {
      owned.push_back({{run.global, run.count}, static_cast<std::int64_t>(s)});
      bounds.insert(bounds.end(), {run.global, run.global + run.count});
    }
  std::ranges::sort(owned, {}, [](const Owned& o) { return std::pair{o.range.first, o.share}; });
  std::ranges::sort(bounds);
  bounds.erase(std::ranges::unique(bounds).begin(), bounds.end());

  std::map<std::vector<std::int64_t>, std::size_t> known;
  std::vector<Owned> active;
  std::size_t next = 0;
  for (std::size_t b = 0; b + 1 < bounds.size(); ++b) {
    std::erase_if(active, [&](const Owned& o) { return o.range.end() <= bounds[b]; });
    for (; next < owned.size() && owned[next].range.first == bounds[b]; ++next)
      active.push_back(owned[next]);
    if (active.empty()) continue;
    std::vector<std::int64_t> shares;
    for (const Owned& o : active) shares.push_back(o.share);
    std::ranges::sort(shares);
    const auto [found, is_new] = known.try_emplace(std::move(shares), axis.classes.size());
    if (is_new) axis.classes.push_back({found->first, {}});
    append_range(axis.classes[found->second].ranges, {bounds[b], bounds[b + 1] - bounds[b]});
  }
  axis.classes_of.resize(axis.shares.size());
  for (std::size_t c = 0; c < axis.classes.size(); ++c) {
    for (const std::int64_t share : axis.classes[c].shares)
      axis.classes_of[static_cast<std::size_t>(share)].push_back(static_cast<std::int64_t>(c));
    axis.is_partition = axis.is_partition && axis.classes[c].shares.size() == 1;
  }
}

}  // namespace

AxisShares divide_axis(const AxisPlacement& axis, const Layout& layout, const Refuse& refuse) {
  AxisShares result;
  std::vector<const AxisSplit*> firsts;
  for (const AxisSegment& segment : axis)
    for (const AxisSplit& split : segment.splits) {
      const std::size_t dimension = layout.index_of(split.dimension);
      if (std::ranges::find(result.dimensions, dimension) != result.dimensions.end()) continue;
      result.dimensions.push_back(dimension);
      firsts.push_back(&split);
    }
  std::int64_t count = 1;
  result.weights.resize(result.dimensions.size());
  for (std::size_t d = result.dimensions.size(); d-- > 0;) {
    result.weights[d] = count;
    count *= layout.dimensions()[result.dimensions[d]].size;
    if (count > most_runs)
      refuse(firsts[d]->position, fmt::format("the axis has more than {} shares", most_runs),
             "divide it by fewer ranks");
  }

  std::map<const AxisSplit*, std::vector<std::int64_t>> sums;
  for (const AxisSegment& segment : axis)
    for (const AxisSplit& split : segment.splits) sums.emplace(&split, sums_of_sizes(split));
  std::int64_t runs = 0;
  for (std::int64_t share = 0; share < count; ++share) {
    IndexSequence indices;
    for (const AxisSegment& segment : axis) {
      IndexSequence left;
      left.append(segment.range);
      for (const AxisSplit& split : segment.splits) {
        const std::size_t dimension = layout.index_of(split.dimension);
        const auto d = static_cast<std::size_t>(std::ranges::find(result.dimensions, dimension) -
                                                result.dimensions.begin());
        IndexSequence divided;
        for (const IndexRange& range :
             share_of(split, sums.at(&split), left.size(), layout.dimensions()[dimension].size,
                      result.coordinate(share, d, layout), refuse))
          divided.append(left, range.first, range.count);
        left = std::move(divided);
      }
      indices.append(left, 0, left.size());
    }
    runs += std::ssize(indices.ranges());
    if (runs > most_runs)
      refuse(firsts.empty() ? 0 : firsts.front()->position,
             fmt::format("the shares of the axis have more than {} runs", most_runs),
             "use larger blocks");
    result.shares.push_back(to_share(indices, axis.front(), refuse));
  }
  classify(result);
  return result;
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/axis_overlap.hpp"

#include <algorithm>
#include <unordered_map>

namespace rankmesh::detail {
namespace {

struct ClassRange {
  IndexRange range;
  std::int64_t number;
};

// All ranges of all classes, in ascending order.
std::vector<ClassRange> ranges_of(const AxisShares& axis) {
  std::vector<ClassRange> result;
  for (std::size_t c = 0; c < axis.classes.size(); ++c)
    for (const IndexRange& range : axis.classes[c].ranges)
      result.push_back({range, static_cast<std::int64_t>(c)});
  std::ranges::sort(result, {}, [](const ClassRange& r) { return r.range.first; });
  return result;
}

// Appends a run, as a repetition of the last one if it fits.
void append(std::vector<Strip>& runs, std::int64_t source, std::int64_t target,
            std::int64_t length) {
  if (!runs.empty()) {
    Strip& last = runs.back();
    const std::int64_t source_step = source - last.source;
    const std::int64_t target_step = target - last.target;
    if (last.count == 1 && source_step == last.length && target_step == last.length) {
      last.length += length;
      return;
    }
    if (last.length == length && last.count == 1) {
      last.count = 2;
      last.source_step = source_step;
      last.target_step = target_step;
      return;
    }
    if (last.length == length && source_step == last.count * last.source_step &&
        target_step == last.count * last.target_step) {
      ++last.count;
      return;
    }
  }
  runs.push_back({source, target, length});
}

// Walks over the runs of a share in ascending order of the indices.
class LocalIndex {
 public:
  explicit LocalIndex(const AxisShare& share) : share_{share} {}
  // Moves to an index of the share, which must not be less than the previous one.
  void move_to(std::int64_t index) {
    const auto begin = share_.by_global.begin() + static_cast<std::ptrdiff_t>(at_);
    const auto found =
        std::upper_bound(begin, share_.by_global.end(), index,
                         [](std::int64_t i, const AxisRun& run) { return i < run.global; });
    at_ = static_cast<std::size_t>(found - share_.by_global.begin()) - 1;
    skipped_ = index - share_.by_global[at_].global;
  }
  [[nodiscard]] std::int64_t local() const { return share_.by_global[at_].local + skipped_; }
  // The number of indices that follow in memory, including this one.
  [[nodiscard]] std::int64_t left() const { return share_.by_global[at_].count - skipped_; }

 private:
  const AxisShare& share_;
  std::size_t at_ = 0;
  std::int64_t skipped_ = 0;
};

}  // namespace

AxisOverlap overlap_of(const AxisShares& from, const AxisShares& to) {
  AxisOverlap overlap;
  overlap.targets_of.resize(from.classes.size());
  overlap.sources_of.resize(to.classes.size());
  const auto sources = ranges_of(from);
  const auto targets = ranges_of(to);
  std::vector<std::unordered_map<std::int64_t, std::size_t>> known(from.classes.size());
  auto s = sources.begin();
  for (const ClassRange& target : targets) {
    std::int64_t at = target.range.first;
    while (s != sources.end() && s->range.end() <= at) ++s;
    for (auto source = s; at < target.range.end(); ++source) {
      if (source == sources.end() || source->range.first > at) {
        overlap.missing = at;
        return overlap;
      }
      const std::int64_t end = std::min(target.range.end(), source->range.end());
      auto& list = overlap.targets_of[static_cast<std::size_t>(source->number)];
      const auto [place, is_new] =
          known[static_cast<std::size_t>(source->number)].try_emplace(target.number, list.size());
      if (is_new) list.push_back({target.number, 0});
      list[place->second].count += end - at;
      at = end;
    }
  }
  for (std::size_t c = 0; c < overlap.targets_of.size(); ++c) {
    std::ranges::sort(overlap.targets_of[c], {}, &CommonIndices::other);
    std::int64_t needed = 0;
    for (CommonIndices& common : overlap.targets_of[c]) {
      const AxisClass& target = to.classes[static_cast<std::size_t>(common.other)];
      common.needed = common.count * std::ssize(target.shares);
      common.needed_before = needed;
      needed += common.needed;
      overlap.sources_of[static_cast<std::size_t>(common.other)].push_back(
          {static_cast<std::int64_t>(c), common.count});
    }
  }
  return overlap;
}

std::vector<Strip> common_runs(const AxisClass& source, const AxisShare& holder,
                               const AxisClass& target, const AxisShare& receiver,
                               std::int64_t begin, std::int64_t end) {
  std::vector<Strip> runs;
  LocalIndex at_holder{holder};
  LocalIndex at_receiver{receiver};
  std::int64_t number = 0;  // of the next common index
  auto s = source.ranges.begin();
  auto t = target.ranges.begin();
  while (s != source.ranges.end() && t != target.ranges.end() && number < end) {
    std::int64_t first = std::max(s->first, t->first);
    std::int64_t last = std::min(s->end(), t->end());
    if (s->end() < t->end())
      ++s;
    else
      ++t;
    if (first >= last) continue;
    const std::int64_t count = last - first;
    last = std::min(last, first + end - number);
    first = std::max(first, first + begin - number);
    number += count;
    while (first < last) {
      at_holder.move_to(first);
      at_receiver.move_to(first);
      const std::int64_t length = std::min({last - first, at_holder.left(), at_receiver.left()});
      append(runs, at_holder.local(), at_receiver.local(), length);
      first += length;
    }
  }
  return runs;
}

}  // namespace rankmesh::detail

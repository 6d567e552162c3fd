// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/relabel.hpp"

#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/assignment.hpp"

namespace rankmesh {
namespace {

constexpr std::size_t most_pairs = std::size_t{1} << 26;

// The ranks that have the same elements.
using RankClasses = std::map<std::vector<std::int64_t>, std::vector<Rank>>;

RankClasses classes_of(const TensorPlacement& place) {
  const Layout& layout = place.layout();
  std::vector<std::size_t> dimensions;
  for (const AxisPlacement& axis : place.axes())
    for (const AxisSegment& segment : axis)
      for (const AxisSplit& split : segment.splits)
        dimensions.push_back(layout.index_of(split.dimension));
  RankClasses classes;
  std::vector<Coordinate> coordinates(layout.dimensions().size());
  for (const Rank rank : layout.ranks()) {
    (void)layout.coordinates(rank, coordinates);
    std::vector<std::int64_t> key;
    for (const std::size_t dimension : dimensions) key.push_back(coordinates[dimension].value());
    classes[key].push_back(rank);
  }
  return classes;
}

// The pairs of ranks of which one holds what the other one needs.
class Holdings {
 public:
  explicit Holdings(const std::set<Rank>& ranks) {
    for (const Rank rank : ranks) number_.emplace(rank, std::ssize(number_));
  }

  void add(const TensorTransfer& tensor, std::int64_t copies) {
    const std::int64_t width = copies * static_cast<std::int64_t>(size_of(tensor.from.type()));
    const RankClasses holders = classes_of(tensor.from);
    for (const auto& [key, receivers] : classes_of(tensor.to)) {
      needed_ += width * tensor.to.local_count(receivers.front()) * std::ssize(receivers);
      for (const auto& [other, ranks] : holders)
        add(ranks, receivers,
            width * common_elements(tensor.from, ranks.front(), tensor.to, receivers.front()));
    }
  }

  [[nodiscard]] const std::vector<HeldBytes>& pairs() const { return pairs_; }
  [[nodiscard]] std::int64_t needed() const { return needed_; }
  [[nodiscard]] std::int64_t count() const { return std::ssize(number_); }

 private:
  void add(const std::vector<Rank>& holders, const std::vector<Rank>& receivers,
           std::int64_t bytes) {
    if (bytes == 0) return;
    for (const Rank holder : holders) {
      const auto known = number_.find(holder);
      if (known == number_.end()) continue;
      if (pairs_.size() + receivers.size() > most_pairs)
        throw UsageError{fmt::format("relabel: more than {} pairs of ranks hold what the other "
                                     "one needs",
                                     most_pairs),
                         "relabel fewer tensors, for example one of each kind"};
      for (const Rank receiver : receivers)
        pairs_.push_back({number_.at(receiver), known->second, bytes});
    }
  }

  std::map<Rank, std::int64_t> number_;
  std::vector<HeldBytes> pairs_;
  std::int64_t needed_ = 0;
};

}  // namespace

TensorPlacement Relabelling::apply(const TensorPlacement& to) const {
  std::vector<Rank> ranks;
  for (const Rank rank : to.ranks()) {
    const auto known = rank_of.find(rank);
    if (known == rank_of.end())
      throw UsageError{fmt::format("a relabelling does not have rank {}", rank.value()),
                       "apply it to places on the ranks that were relabelled"};
    ranks.push_back(known->second);
  }
  return to.on(RankSet::of(ranks));
}

std::vector<TensorTransfer> Relabelling::apply(std::span<const TensorTransfer> tensors) const {
  std::vector<TensorTransfer> result;
  for (const TensorTransfer& tensor : tensors)
    result.push_back({tensor.from, apply(tensor.to), tensor.name});
  return result;
}

Relabelling relabel(std::span<const TensorTransfer> tensors) {
  std::set<Rank> ranks;
  std::map<std::pair<std::string, std::string>, std::pair<const TensorTransfer*, std::int64_t>>
      kinds;
  for (const TensorTransfer& tensor : tensors) {
    auto& [first, copies] = kinds[{tensor.from.to_string(), tensor.to.to_string()}];
    first = &tensor;
    if (++copies == 1)
      for (const Rank rank : tensor.to.ranks()) ranks.insert(rank);
  }
  Holdings holdings{ranks};
  for (const auto& [texts, kind] : kinds) holdings.add(*kind.first, kind.second);
  const Assignment best = assign_ranks(holdings.count(), holdings.count(), holdings.pairs());
  Relabelling result;
  const std::vector<Rank> list{ranks.begin(), ranks.end()};
  for (std::size_t i = 0; i < list.size(); ++i)
    result.rank_of.emplace(list[i], list[static_cast<std::size_t>(best.rank_of[i])]);
  std::int64_t kept_before = 0;
  for (const HeldBytes& pair : holdings.pairs())
    if (pair.coordinate == pair.rank) kept_before += pair.bytes;
  result.moved_bytes = holdings.needed() - best.kept;
  result.moved_before = holdings.needed() - kept_before;
  result.least_moved_bytes = holdings.needed() - best.bound;
  result.how = best.how;
  return result;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/relabel.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/transfer/assignment.hpp"
#include "transfer/detail/cells.hpp"
#include "transfer/detail/placement_data.hpp"

namespace rankmesh {
namespace {

// Returns all ranks of the mesh of a place, including ranks without elements of the tensor.
const RankSet& ranks_of_mesh(const TensorPlacement& place) {
  const TensorPlacement::Data& data = place.data();
  return data.on ? *data.on : data.mesh_layout.ranks();
}

constexpr std::size_t most_pairs = std::size_t{1} << 26;

// Finds the classes of an axis by their indices.
class ClassFinder {
 public:
  explicit ClassFinder(const detail::AxisShares& axis) {
    for (std::size_t c = 0; c < axis.classes.size(); ++c)
      for (const IndexRange& range : axis.classes[c].ranges)
        ranges_.emplace_back(range, static_cast<std::int64_t>(c));
    std::ranges::sort(ranges_, {}, [](const auto& entry) { return entry.first.first; });
  }

  /// Returns the classes that have indices of a share, and the numbers of these indices.
  [[nodiscard]] std::vector<std::pair<std::int64_t, std::int64_t>> in(
      const detail::AxisShare& share) const {
    std::map<std::int64_t, std::int64_t> counts;
    for (const AxisRun& run : share.by_global) {
      const std::int64_t end = run.global + run.count;
      auto entry = std::ranges::upper_bound(ranges_, run.global, {},
                                            [](const auto& e) { return e.first.end(); });
      for (; entry != ranges_.end() && entry->first.first < end; ++entry)
        counts[entry->second] +=
            std::min(end, entry->first.end()) - std::max(run.global, entry->first.first);
    }
    return {counts.begin(), counts.end()};
  }

 private:
  std::vector<std::pair<IndexRange, std::int64_t>> ranges_;  // ascending
};

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

// Calls `take(cell, elements)` for each cell of the place before that has elements which a rank has
// afterwards.
template <class Take>
void for_each_common_cell(const std::vector<ClassFinder>& axes, const TensorPlacement::Data& to,
                          Rank receiver, Take&& take) {
  std::vector<std::int64_t> shares;
  if (!to.shares_of(receiver, shares)) return;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> lists;
  for (std::size_t a = 0; a < axes.size(); ++a)
    lists.push_back(axes[a].in(to.shares[a].shares[static_cast<std::size_t>(shares[a])]));
  detail::for_each_combination(lists, [&](const auto& classes) {
    detail::Classes cell;
    std::int64_t elements = 1;
    for (const auto& [number, count] : classes) {
      cell.push_back(number);
      elements *= count;
    }
    take(cell, elements);
  });
}

// The pairs of ranks of which one holds what the other one needs.
class Holdings {
 public:
  Holdings(const std::set<Rank>& ranks, const RelabelOptions& options) : options_{options} {
    for (const Rank rank : ranks) number_.emplace(rank, std::ssize(number_));
    if (options_.machine != nullptr)
      for (const Rank rank : ranks) on_node_[node(rank)].push_back(rank);
  }

  void add(const TensorTransfer& tensor, std::int64_t copies) {
    const std::int64_t width =
        copies * static_cast<std::int64_t>(size_of(message_type(tensor, TransferStep::first)));
    // Throws unless the shapes are equal.
    (void)common_elements(tensor.from, Rank{0}, tensor.to, Rank{0});
    const detail::CellRanks cells{tensor.from.data()};
    std::vector<ClassFinder> axes;
    for (const detail::AxisShares& axis : tensor.from.data().shares) axes.emplace_back(axis);
    for (const auto& [key, receivers] : classes_of(tensor.to)) {
      needed_ += width * tensor.to.local_count(receivers.front()) * std::ssize(receivers);
      // Different cells have different elements, so each of them counts once on a rank or a node.
      std::map<Rank, std::int64_t> held;
      std::map<std::int64_t, std::int64_t> held_on_node;
      for_each_common_cell(axes, tensor.to.data(), receivers.front(),
                           [&](const detail::Classes& cell, std::int64_t elements) {
                             const std::vector<Rank> holders = cells.of_all_sums(cell);
                             for (const Rank holder : holders) held[holder] += elements * width;
                             for (const std::int64_t on : nodes(holders))
                               held_on_node[on] += elements * width;
                           });
      for (const auto& [holder, bytes] : held) {
        add({&holder, 1}, receivers, bytes, own_);
        add({&holder, 1}, receivers, bytes * options_.node_weight, weighted_);
      }
      for (const auto& [on, bytes] : held_on_node)
        add(on_node_[on], receivers, bytes * (options_.network_weight - options_.node_weight),
            weighted_);
    }
  }

  [[nodiscard]] const std::vector<HeldBytes>& own() const { return own_; }
  [[nodiscard]] const std::vector<HeldBytes>& weighted() const { return weighted_; }
  [[nodiscard]] std::int64_t needed() const { return needed_; }
  /// Returns what all bytes cost if each of them has to move as far as possible.
  [[nodiscard]] std::int64_t greatest_cost() const {
    return needed_ * (options_.machine == nullptr ? options_.node_weight : options_.network_weight);
  }
  [[nodiscard]] std::int64_t count() const { return std::ssize(number_); }

 private:
  [[nodiscard]] std::int64_t node(Rank rank) const {
    return options_.machine->unit(options_.machine->node_level(), rank.value());
  }
  // Returns the nodes of ranks, each once.
  [[nodiscard]] std::set<std::int64_t> nodes(const std::vector<Rank>& ranks) const {
    std::set<std::int64_t> result;
    if (options_.machine != nullptr)
      for (const Rank rank : ranks) result.insert(node(rank));
    return result;
  }

  void add(std::span<const Rank> holders, const std::vector<Rank>& receivers, std::int64_t bytes,
           std::vector<HeldBytes>& pairs) const {
    for (const Rank holder : holders) {
      const auto known = number_.find(holder);
      if (known == number_.end()) continue;
      if (pairs.size() + receivers.size() > most_pairs)
        throw UsageError{fmt::format("relabel: more than {} pairs of ranks hold what the other "
                                     "one needs",
                                     most_pairs),
                         "relabel fewer tensors, for example one of each kind"};
      for (const Rank receiver : receivers)
        pairs.push_back({number_.at(receiver), known->second, bytes});
    }
  }

  const RelabelOptions& options_;
  std::map<Rank, std::int64_t> number_;
  std::map<std::int64_t, std::vector<Rank>> on_node_;
  std::vector<HeldBytes> own_, weighted_;
  std::int64_t needed_ = 0;
};

void validate(const RelabelOptions& options, const std::vector<TensorTransfer>& kinds) {
  if (options.node_weight < 0 || options.network_weight < options.node_weight)
    throw UsageError{fmt::format("relabel: a byte costs {} in a node and {} between nodes",
                                 options.node_weight, options.network_weight),
                     "use weights of 0 or more, the greater one between nodes"};
  if (options.machine == nullptr) return;
  for (const TensorTransfer& tensor : kinds)
    for (const TensorPlacement* place : {&tensor.from, &tensor.to})
      for (const Rank rank : place->ranks())
        if (rank.value() >= options.machine->slot_count())
          throw UsageError{fmt::format("relabel: there is a rank {}, but the machine has {} slots",
                                       rank.value(), options.machine->slot_count()),
                           "describe a machine with a slot for every rank"};
}

// Returns the bytes of the pairs in which each rank takes the coordinate of `rank_of`.
std::int64_t sum_of(const std::vector<HeldBytes>& pairs, const std::vector<std::int64_t>& rank_of) {
  std::int64_t sum = 0;
  for (const HeldBytes& pair : pairs)
    if (rank_of[static_cast<std::size_t>(pair.coordinate)] == pair.rank) sum += pair.bytes;
  return sum;
}

}  // namespace

TensorPlacement Relabelling::apply(const TensorPlacement& to) const {
  const TensorPlacement::Data& data = to.data();
  std::vector<Rank> ranks;
  for (std::int64_t r = 0; r < data.mesh_layout.size(); ++r) {
    const Rank rank = data.on ? data.on->at(r) : Rank{r};
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
  for (const TensorTransfer& tensor : tensors) {
    result.push_back(tensor);
    result.back().to = apply(tensor.to);
  }
  return result;
}

Relabelling relabel(std::span<const TensorTransfer> tensors, const RelabelOptions& options) {
  std::set<Rank> ranks;
  std::map<std::pair<std::string, std::string>, std::int64_t> copies;
  std::vector<TensorTransfer> kinds;
  for (const TensorTransfer& tensor : tensors)
    if (++copies[{tensor.from.to_string(), tensor.to.to_string()}] == 1) kinds.push_back(tensor);
  validate(options, kinds);
  for (const TensorTransfer& tensor : kinds)
    for (const Rank rank : ranks_of_mesh(tensor.to)) ranks.insert(rank);
  Holdings holdings{ranks, options};
  for (const TensorTransfer& tensor : kinds)
    holdings.add(tensor, copies.at({tensor.from.to_string(), tensor.to.to_string()}));
  const Assignment best = assign_ranks(holdings.count(), holdings.count(), holdings.weighted());
  Relabelling result;
  const std::vector<Rank> list{ranks.begin(), ranks.end()};
  std::vector<std::int64_t> unchanged;
  for (std::size_t i = 0; i < list.size(); ++i) {
    result.rank_of.emplace(list[i], list[static_cast<std::size_t>(best.rank_of[i])]);
    unchanged.push_back(static_cast<std::int64_t>(i));
  }
  result.moved_bytes = holdings.needed() - sum_of(holdings.own(), best.rank_of);
  result.moved_before = holdings.needed() - sum_of(holdings.own(), unchanged);
  result.cost = holdings.greatest_cost() - best.kept;
  result.least_cost = holdings.greatest_cost() - best.bound;
  result.how = best.how;
  return result;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Plans which ranks receive the elements of each cell.
#include "detail/pair_plan.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/base/error.hpp"

namespace rankmesh::detail {
namespace {

std::string named(const TensorTransfer& tensor) {
  return tensor.name.empty() ? "the tensor" : fmt::format("the tensor '{:.80}'", tensor.name);
}

void check(const TensorTransfer& tensor) {
  if (tensor.from.shape() != tensor.to.shape())
    throw UsageError{
        fmt::format("{} has the shape [{}] before the transfer, but [{}] after it", named(tensor),
                    fmt::join(tensor.from.shape(), ","), fmt::join(tensor.to.shape(), ",")),
        "describe both places with the same shape"};
  if (!tensor.to.sums().empty())
    throw UsageError{fmt::format("{} would have partial sums along '{}' after the transfer",
                                 named(tensor), tensor.to.sums().front()),
                     "a transfer adds partial sums: leave sum() out of the place after it"};
  if (tensor.copy && (!tensor.from.sums().empty() ||
                      tensor.copy->on(RankSet::range(0, tensor.copy->data().mesh_layout.size())) !=
                          tensor.from.on(RankSet::range(0, tensor.from.data().mesh_layout.size()))))
    throw UsageError{fmt::format("the copies of {} at '{}' are not copies of '{}'", named(tensor),
                                 tensor.copy->to_string(), tensor.from.to_string()),
                     "use the place before the transfer on other ranks (TensorPlacement::on), "
                     "without sums"};
}

void check_receivers(const TensorTransfer& tensor, const std::vector<Rank>& lost) {
  for (const Rank rank : lost)
    if (tensor.to.ranks().contains(rank))
      throw UsageError{fmt::format("{} would be on rank {} after the transfer, which is lost",
                                   named(tensor), rank.value()),
                       "describe the place after the transfer on living ranks"};
}

// Returns the first index that two classes have in common.
std::int64_t first_common(const AxisClass& a, const AxisClass& b) {
  std::int64_t first = INT64_MAX;
  for (const IndexRange& x : a.ranges)
    for (const IndexRange& y : b.ranges)
      if (std::max(x.first, y.first) < std::min(x.end(), y.end()))
        first = std::min(first, std::max(x.first, y.first));
  return first;
}

// Divides [0, count) into equal parts for the primary receivers. Each of them forwards its part to
// all other receivers. Calls `need(receiver, begin, end)` for each part.
template <class Need>
void add_group(CellPlan& cell, std::size_t target, const std::vector<Rank>& primaries,
               const std::vector<Rank>& receivers, bool forwards, const Need& need) {
  const std::int64_t count = cell.targets[target].count;
  const auto parts = std::ssize(primaries);
  std::int64_t begin = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Rank primary = primaries[static_cast<std::size_t>(part)];
    const std::int64_t end = begin + count / parts + (part < count % parts ? 1 : 0);
    if (begin == end) break;
    need(primary, begin, end);
    if (forwards)
      for (const Rank receiver : receivers)
        if (receiver != primary)
          cell.settled.push_back({primary, receiver, target, begin, end, TransferStep::forward});
    begin = end;
  }
}

}  // namespace

PairPlan::PairPlan(const TensorTransfer& tensor, const Machine* machine,
                   const TransferOptions& options)
    : from_{(check(tensor), tensor.from.data())},
      to_{tensor.to.data()},
      copy_{tensor.copy ? &tensor.copy->data() : nullptr},
      lost_{options.lost},
      machine_{machine},
      fan_out_{options.fan_out && machine != nullptr},
      sources_{from_},
      receivers_{to_} {
  if (copy_ != nullptr) copies_.emplace(*copy_);
  check_receivers(tensor, lost_);
  for (std::size_t a = 0; a < from_.shares.size(); ++a) {
    overlaps_.push_back(overlap_of(from_.shares[a], to_.shares[a]));
    if (overlaps_.back().missing >= 0 && to_.elements > 0)
      throw UsageError{
          fmt::format(
              "{}: a rank needs the index {} of axis {} after the transfer, but no rank has "
              "it before",
              named(tensor), overlaps_.back().missing, a),
          "let the source have all elements that the target has"};
  }
  if (!lost_.empty()) require_holders(tensor);
  level();
}

std::vector<Rank> PairPlan::holders(const Classes& cell, std::int64_t sum) const {
  std::vector<Rank> all = sources_.of(cell, sum);
  if (copies_) {
    const std::vector<Rank> copies = copies_->of(cell, sum);
    all.insert(all.end(), copies.begin(), copies.end());
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
  }
  std::erase_if(all, [&](Rank rank) { return std::ranges::binary_search(lost_, rank); });
  return all;
}

PairPlan::SourcePart PairPlan::part_with(const Classes& cell, Rank holder) const {
  std::vector<std::int64_t> shares;
  bool has_cell = from_.shares_of(holder, shares);
  const bool has_part = has_cell;
  std::int64_t count = 1;
  for (std::size_t a = 0; has_part && a < shares.size(); ++a) {
    const auto share = static_cast<std::size_t>(shares[a]);
    const Classes& own = from_.shares[a].classes_of[share];
    has_cell = has_cell && std::ranges::find(own, cell[a]) != own.end();
    count *= from_.shares[a].shares[share].count;
  }
  if (has_cell) return {from_, 0};
  return {*copy_, has_part ? count : 0};
}

// Throws if all ranks that had some of the elements of the target are lost.
void PairPlan::require_holders(const TensorTransfer& tensor) const {
  for_each_cell_of(from_, [&](const Classes& source) {
    const std::vector<CellTarget> targets = targets_of(source);
    for (std::int64_t sum = 0; !targets.empty() && sum < sources_.sum_count(); ++sum) {
      if (!holders(source, sum).empty()) continue;
      std::vector<std::int64_t> index;
      for (std::size_t a = 0; a < source.size(); ++a)
        index.push_back(
            first_common(from_.shares[a].classes[static_cast<std::size_t>(source[a])],
                         to_.shares[a].classes[static_cast<std::size_t>(targets.front().cell[a])]));
      std::vector<Rank> had = sources_.of(source, sum);
      if (copies_) std::ranges::copy(copies_->of(source, sum), std::back_inserter(had));
      std::ranges::sort(had);
      std::vector<std::int64_t> ranks;
      for (const Rank rank : had) ranks.push_back(rank.value());
      throw LostElements{
          fmt::format("{}: the element [{}] was on rank{} {}, and no rank has it any "
                      "more",
                      named(tensor), fmt::join(index, ","), ranks.size() == 1 ? "" : "s",
                      fmt::join(ranks, ", ")),
          "load the tensor from a checkpoint", tensor.name, std::move(index), std::move(had)};
    }
  });
}

CellTarget common_cell(const std::vector<CommonIndices>& axes) {
  CellTarget common{.count = 1};
  for (const CommonIndices& axis : axes) {
    common.cell.push_back(axis.other);
    common.count *= axis.count;
  }
  return common;
}

std::vector<CellTarget> PairPlan::targets_of(const Classes& source) const {
  std::vector<std::vector<CommonIndices>> lists;
  for (std::size_t a = 0; a < source.size(); ++a)
    lists.push_back(overlaps_[a].targets_of[static_cast<std::size_t>(source[a])]);
  std::vector<CellTarget> targets;
  for_each_combination(lists, [&](const std::vector<CommonIndices>& tuple) {
    targets.push_back(common_cell(tuple));
  });
  return targets;
}

CellPlan PairPlan::plan(const Classes& source, std::int64_t sum,
                        std::vector<CellTarget> targets) const {
  CellPlan cell{.source = source,
                .sum = sum,
                .holders = holders(source, sum),
                .holder_nodes = {},
                .targets = std::move(targets),
                .settled = {},
                .needs = {},
                .choices = {}};
  if (machine_ != nullptr)
    for (const Rank holder : cell.holders) cell.holder_nodes.push_back(node(holder));
  std::ranges::sort(cell.holder_nodes);
  cell.holder_nodes.erase(std::ranges::unique(cell.holder_nodes).begin(), cell.holder_nodes.end());
  for (std::size_t target = 0; target < cell.targets.size(); ++target)
    if (from_.sums.empty())
      add_needs(cell, target);
    else
      add_needs_of_sum(cell, target);
  add_choices(cell);
  return cell;
}

void PairPlan::add_needs(CellPlan& cell, std::size_t target) const {
  const std::int64_t count = cell.targets[target].count;
  const auto need = [&](Rank receiver, std::int64_t begin, std::int64_t end) {
    cell.needs.push_back({-1, receiver, target, begin, end});
  };
  std::map<std::int64_t, std::vector<Rank>> groups;  // by node
  for (const Rank receiver : receivers_.of(cell.targets[target].cell, 0)) {
    if (std::ranges::binary_search(cell.holders, receiver))
      cell.settled.push_back({receiver, receiver, target, 0, count});
    else if (fan_out_ && !std::ranges::binary_search(cell.holder_nodes, node(receiver)))
      groups[node(receiver)].push_back(receiver);
    else
      need(receiver, 0, count);
  }
  for (const auto& [node, receivers] : groups)
    add_group(cell, target, receivers, receivers, true, need);
}

// Each element is added up on one rank, which forwards the sum to the others.
void PairPlan::add_needs_of_sum(CellPlan& cell, std::size_t target) const {
  const std::vector<Rank> all = receivers_.of(cell.targets[target].cell, 0);
  const std::vector<Rank> summands = sources_.of_all_sums(cell.source);
  std::vector<Rank> primaries;  // an own summand need not be sent
  std::ranges::set_intersection(all, summands, std::back_inserter(primaries));
  const bool has_own = !primaries.empty();
  if (!has_own) primaries = all;
  add_group(cell, target, primaries, all, cell.sum == 0,
            [&](Rank receiver, std::int64_t begin, std::int64_t end) {
              if (std::ranges::binary_search(cell.holders, receiver))
                cell.settled.push_back({receiver, receiver, target, begin, end});
              else
                cell.needs.push_back({-1, receiver, target, begin, end, TransferStep::first,
                                      has_own || cell.sum > 0});
            });
}

// If a rank is on the node of a holder, only the holders on this node send to it. Any holder can
// send to all other ranks.
void PairPlan::add_choices(CellPlan& cell) const {
  constexpr std::int64_t other_nodes = INT64_MAX;
  std::vector<std::pair<std::int64_t, std::size_t>> order;  // the node of each need, and its index
  order.reserve(cell.needs.size());
  for (const Shipment& need : cell.needs) {
    const std::int64_t on = cell.holder_nodes.empty() ? other_nodes : node(need.receiver);
    const bool has_holder = std::ranges::binary_search(cell.holder_nodes, on);
    order.emplace_back(has_holder ? on : other_nodes, order.size());
  }
  if (!std::ranges::is_sorted(order)) {
    std::ranges::sort(order);
    std::vector<Shipment> sorted;
    sorted.reserve(order.size());
    for (const auto& [on, need] : order) sorted.push_back(cell.needs[need]);
    cell.needs = std::move(sorted);
  }
  for (std::size_t begin = 0; begin < cell.needs.size();) {
    SenderChoice choice{.begin = begin, .end = begin, .senders = {}};
    const std::int64_t on = order[begin].first;
    for (; choice.end < cell.needs.size() && order[choice.end].first == on; ++choice.end)
      choice.elements += cell.needs[choice.end].end - cell.needs[choice.end].begin;
    for (std::size_t h = 0; h < cell.holders.size(); ++h)
      if (on == other_nodes || node(cell.holders[h]) == on) choice.senders.push_back(h);
    begin = choice.end;
    cell.choices.push_back(std::move(choice));
  }
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Which of the ranks that have an element sends it.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "detail/pair_plan.hpp"

namespace rankmesh::detail {
namespace {

// Divides `amount` units among workers so that the greatest load is as small as possible, then the
// second greatest load, and so on: the loads of the least loaded workers are raised to a common
// level (water filling). If workers are equally loaded, the first of them get one unit more.
// `loads` are the units that each worker already has. Returns the units for each worker.
std::vector<std::int64_t> fill(std::span<const std::int64_t> loads, std::int64_t amount) {
  const auto workers = std::ssize(loads);
  std::vector<std::int64_t> result(loads.size(), 0);
  const auto [least, most] = std::ranges::minmax_element(loads);
  if (*least == *most) {
    for (std::int64_t w = 0; w < workers; ++w)
      result[static_cast<std::size_t>(w)] = amount / workers + (w < amount % workers ? 1 : 0);
    return result;
  }
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t w) { return loads[w]; });
  std::int64_t sum = amount;  // of the raised workers' final loads
  std::size_t raised = 0;
  while (raised < order.size() && sum > loads[order[raised]] * static_cast<std::int64_t>(raised)) {
    sum += loads[order[raised]];
    ++raised;
  }
  if (raised == 0) return result;  // nothing to divide
  const auto count = static_cast<std::int64_t>(raised);
  std::int64_t rest = sum % count;
  std::ranges::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(raised));
  for (std::size_t i = 0; i < raised; ++i) {
    const std::size_t w = order[i];
    result[w] = sum / count - loads[w];
    if (rest > 0) {
      ++result[w];
      --rest;
    }
  }
  return result;
}

// Divides the elements of each choice among its senders. `loads` has one load per holder.
std::vector<std::vector<std::int64_t>> divide(const CellPlan& cell,
                                              std::vector<std::int64_t>& loads) {
  std::vector<std::vector<std::int64_t>> result;
  for (const SenderChoice& choice : cell.choices) {
    std::vector<std::int64_t> before;
    for (const std::size_t sender : choice.senders) before.push_back(loads[sender]);
    result.push_back(fill(before, choice.elements));
    for (std::size_t i = 0; i < choice.senders.size(); ++i)
      loads[choice.senders[i]] += result.back()[i];
  }
  return result;
}

bool has_several_cells(const TensorPlacement::Data& place) {
  return std::ranges::any_of(place.shares, [](const AxisShares& axis) {
    return std::ranges::any_of(axis.classes_of, [](const auto& c) { return c.size() > 1; });
  });
}

}  // namespace

// If a rank has several cells, another holder can send one of them instead. Each choice in turn is
// repeated with the loads of all other choices, until no choice changes. Each step lowers the sum
// of the squared loads. At the minimum of this sum, the greatest load is as small as possible.
void PairPlan::level() {
  if (!has_several_cells(from_) && copy_ == nullptr) return;
  constexpr std::size_t most_cells = std::size_t{1} << 20;
  constexpr int most_passes = 100;
  std::size_t count = 1;
  for (const AxisShares& axis : from_.shares)
    if (count <= most_cells) count *= std::max<std::size_t>(1, axis.classes.size());
  if (count > most_cells) return;

  std::vector<CellPlan> cells;
  for_each_cell([&](CellPlan cell) {
    if (!cell.needs.empty()) cells.push_back(std::move(cell));
  });
  std::ranges::stable_sort(cells, {}, [](const CellPlan& cell) { return cell.holders.size(); });

  std::unordered_map<std::int64_t, std::int64_t> loads;  // by rank
  bool has_changed = true;
  for (int pass = 0; pass < most_passes && has_changed; ++pass) {
    has_changed = false;
    for (const CellPlan& cell : cells) {
      auto& amounts = levelled_[{cell.source, cell.sum}];
      for (std::size_t c = 0; c < amounts.size(); ++c)
        for (std::size_t i = 0; i < amounts[c].size(); ++i)
          loads[cell.holders[cell.choices[c].senders[i]].value()] -= amounts[c][i];
      std::vector<std::int64_t> own;
      for (const Rank holder : cell.holders) own.push_back(loads[holder.value()]);
      auto changed = divide(cell, own);
      for (std::size_t h = 0; h < own.size(); ++h) loads[cell.holders[h].value()] = own[h];
      has_changed = has_changed || changed != amounts;
      amounts = std::move(changed);
    }
  }
}

std::vector<Shipment> PairPlan::shipments(const CellPlan& cell) const {
  std::vector<Shipment> result = cell.settled;
  const auto levelled = levelled_.find({cell.source, cell.sum});
  std::vector<std::vector<std::int64_t>> amounts;
  if (levelled != levelled_.end() && cell.holders.size() > 1) {
    amounts = levelled->second;
  } else {
    std::vector<std::int64_t> loads(cell.holders.size(), 0);
    amounts = divide(cell, loads);
  }
  // Each sender takes the next elements of the needs, in their order.
  for (std::size_t c = 0; c < cell.choices.size(); ++c) {
    const SenderChoice& choice = cell.choices[c];
    std::size_t sender = 0;
    std::int64_t left = amounts[c].empty() ? 0 : amounts[c].front();
    for (std::size_t n = choice.begin; n < choice.end; ++n) {
      Shipment part = cell.needs[n];
      const std::int64_t end = part.end;
      while (part.begin < end) {
        while (left == 0) left = amounts[c][++sender];
        part.end = std::min(end, part.begin + left);
        part.sender = cell.holders[choice.senders[sender]];
        result.push_back(part);
        left -= part.end - part.begin;
        part.begin = part.end;
      }
    }
  }
  return result;
}

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Where one element comes from.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/common_blocks.hpp"
#include "detail/plan_data.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh {
namespace {

using detail::AxisClass;
using detail::CellPlan;
using detail::Classes;
using detail::PairPlan;
using detail::Shipment;

// Returns the number of common indices of two classes that are less than `index`.
std::int64_t number_of(const AxisClass& a, const AxisClass& b, std::int64_t index) {
  std::int64_t number = 0;
  for (const IndexRange& x : a.ranges)
    for (const IndexRange& y : b.ranges)
      number += std::max<std::int64_t>(
          0, std::min({x.end(), y.end(), index}) - std::max(x.first, y.first));
  return number;
}

// @param offset  Returns the place of the element in the memory of a rank.
template <class Offset>
std::string places_text(const std::vector<Rank>& ranks, const Offset& offset) {
  constexpr std::size_t most = 16;
  std::vector<std::string> parts;
  for (const Rank rank : ranks) {
    if (parts.size() == most) {
      parts.push_back(fmt::format("and {} more", ranks.size() - most));
      break;
    }
    parts.push_back(fmt::format("rank {} (offset {})", rank.value(), offset(rank)));
  }
  return parts.empty() ? "no rank" : fmt::format("{}", fmt::join(parts, ", "));
}

// The ranks that have the element or a partial sum of it.
std::vector<Rank> all_holders(const PairPlan& pair, const Classes& cell) {
  std::vector<Rank> all;
  for (std::int64_t sum = 0; sum < pair.sources().sum_count(); ++sum)
    std::ranges::copy(pair.holders(cell, sum), std::back_inserter(all));
  std::ranges::sort(all);
  return all;
}

std::string step_text(const Shipment& s, bool has_sums) {
  if (s.sender == s.receiver)
    return fmt::format("rank {} {} its own element", s.receiver.value(),
                       has_sums ? "begins with" : "keeps");
  if (s.step == TransferStep::forward)
    return fmt::format("rank {} receives it from rank {}, which forwards it", s.receiver.value(),
                       s.sender.value());
  return fmt::format("rank {} {} it from rank {}", s.receiver.value(),
                     s.is_added ? "receives and adds" : "receives", s.sender.value());
}

}  // namespace

std::string TransferPlan::explain(std::size_t tensor, std::span<const std::int64_t> index) const {
  if (tensor >= data_->tensors.size())
    throw UsageError{fmt::format("there is no tensor {}: the plan has {}", tensor,
                                 detail::count_text(data_->tensors.size(), "tensor")),
                     "tensors are numbered from 0"};
  const TensorTransfer& move = data_->tensors[tensor];
  const auto& shape = move.from.shape();
  bool is_inside = index.size() == shape.size();
  for (std::size_t a = 0; is_inside && a < shape.size(); ++a)
    is_inside = index[a] >= 0 && index[a] < shape[a];
  if (!is_inside)
    throw UsageError{fmt::format("there is no element [{}] in a tensor of shape [{}]",
                                 fmt::join(index, ","), fmt::join(shape, ",")),
                     "give one index per axis, from 0 to its size - 1"};

  const PairPlan& pair = data_->pairs[data_->kinds[tensor]];
  Classes source;
  Classes target;
  bool has_source = true;
  bool has_target = true;
  std::int64_t number = 0;
  for (std::size_t a = 0; a < shape.size(); ++a) {
    source.push_back(pair.from().shares[a].class_of(index[a]));
    target.push_back(pair.to().shares[a].class_of(index[a]));
    has_source = has_source && source.back() >= 0;
    has_target = has_target && target.back() >= 0;
    if (!has_source || !has_target) continue;
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    number = number * pair.common(a, source.back(), target.back()) +
             number_of(pair.from().shares[a].classes[at(source.back())],
                       pair.to().shares[a].classes[at(target.back())], index[a]);
  }
  std::string text = fmt::format("element [{}]", fmt::join(index, ","));
  if (!move.name.empty()) text += " of " + move.name;
  const bool has_sums = !move.from.sums().empty();
  const auto offset_before = [&](Rank rank) {
    if (const auto own = move.from.local_offset(rank, index)) return *own;
    return move.from.local_count(rank) + move.copy->local_offset(rank, index).value_or(-1);
  };
  text +=
      fmt::format("\n  before: {}{}",
                  has_source ? places_text(all_holders(pair, source), offset_before) : "no rank",
                  has_sums ? fmt::format("; their partial sums along {} are added",
                                         fmt::join(move.from.sums(), ", "))
                           : "");
  text += fmt::format(
      "\n  after:  {}",
      has_target
          ? places_text(pair.receivers().of(target, 0),
                        [&](Rank rank) { return move.to.local_offset(rank, index).value_or(-1); })
          : "no rank");
  if (!has_source || !has_target) return text + "\n";
  std::vector<Shipment> found;
  for (std::int64_t sum = 0; sum < pair.sources().sum_count(); ++sum) {
    const CellPlan cell = pair.plan(source, sum, pair.targets_of(source));
    for (const Shipment& s : pair.shipments(cell))
      if (cell.targets[s.target].cell == target && s.begin <= number && number < s.end)
        found.push_back(s);
  }
  std::ranges::stable_sort(found, [](const Shipment& a, const Shipment& b) {
    return std::tuple{a.receiver, a.step, a.is_added} < std::tuple{b.receiver, b.step, b.is_added};
  });
  for (const Shipment& s : found) text += "\n  " + step_text(s, has_sums);
  return text + "\n";
}

}  // namespace rankmesh

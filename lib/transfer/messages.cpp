// SPDX-License-Identifier: BSD-3-Clause
// The messages of one rank.
#include <algorithm>
#include <deque>
#include <tuple>

#include "detail/common_blocks.hpp"
#include "detail/pair_plan.hpp"

namespace rankmesh::detail {
namespace {

struct Entry {
  const CellPlan* cell;
  Shipment shipment;
  [[nodiscard]] const CellTarget& target() const { return cell->targets[shipment.target]; }
};

// The order of the entries of one message. Sender and receiver must compute the same order.
auto order_in_message(const Entry& e) {
  return std::tie(e.cell->source, e.cell->sum, e.target().cell, e.shipment.begin);
}

class Messages {
 public:
  Messages(const PairPlan& plan, std::vector<TransferMessage>& messages)
      : plan_{plan}, messages_{messages} {}

  void add(const Entry& entry, Rank peer) {
    const Shipment& shipment = entry.shipment;
    if (messages_.empty() || messages_.back().peer != peer ||
        messages_.back().step != shipment.step || messages_.back().is_added != shipment.is_added)
      messages_.push_back({peer, shipment.step, shipment.is_added, 0, {}});
    const auto [memory, offset] = shipment.step == TransferStep::forward
                                      ? PairPlan::SourcePart{plan_.to(), 0}
                                      : plan_.part_with(entry.cell->source, shipment.sender);
    memory.shares_of(shipment.sender, holder_);
    plan_.to().shares_of(shipment.receiver, receiver_);
    axes_.clear();
    for (std::size_t a = 0; a < holder_.size(); ++a) {
      const auto index = [](std::int64_t i) { return static_cast<std::size_t>(i); };
      const AxisShares& from = plan_.from().shares[a];
      const AxisShares& to = plan_.to().shares[a];
      axes_.push_back({&from.classes[index(entry.cell->source[a])],
                       &memory.shares[a].shares[index(holder_[a])],
                       &to.classes[index(entry.target().cell[a])], &to.shares[index(receiver_[a])],
                       plan_.common(a, entry.cell->source[a], entry.target().cell[a])});
    }
    TransferMessage& message = messages_.back();
    message.elements += shipment.end - shipment.begin;
    const std::size_t before = message.blocks.size();
    append_blocks(axes_, shipment.begin, shipment.end, message.blocks);
    for (std::size_t b = before; b < message.blocks.size(); ++b) message.blocks[b].source += offset;
  }

 private:
  const PairPlan& plan_;
  std::vector<TransferMessage>& messages_;
  std::vector<std::int64_t> holder_, receiver_;
  std::vector<CommonAxis> axes_;
};

}  // namespace

const CommonIndices* PairPlan::find_common(std::size_t axis, std::int64_t source,
                                           std::int64_t target) const {
  const auto& list = overlaps_[axis].targets_of[static_cast<std::size_t>(source)];
  const auto found = std::ranges::lower_bound(list, target, {}, &CommonIndices::other);
  return found != list.end() && found->other == target ? &*found : nullptr;
}

std::int64_t PairPlan::common(std::size_t axis, std::int64_t source, std::int64_t target) const {
  const CommonIndices* const found = find_common(axis, source, target);
  return found == nullptr ? 0 : found->count;
}

// Returns two kinds of cells: those that the rank has before the transfer, with all their targets,
// and those of which the rank needs elements, with the targets that the rank has.
std::map<PairPlan::CellKey, PairPlan::CellOfRank> PairPlan::cells_of(Rank rank) const {
  std::map<CellKey, CellOfRank> cells;
  for_each_cell_of(to_, rank, [&](const Classes& target) {
    std::vector<std::vector<CommonIndices>> lists;
    for (std::size_t a = 0; a < target.size(); ++a)
      lists.push_back(overlaps_[a].sources_of[static_cast<std::size_t>(target[a])]);
    for_each_combination(lists, [&](const std::vector<CommonIndices>& tuple) {
      const CellTarget source = common_cell(tuple);
      for (std::int64_t sum = 0; sum < sources_.sum_count(); ++sum)
        cells[{source.cell, sum}].targets.push_back({target, source.count});
    });
  });
  // Which holder sends depends on the needs of the other ranks.
  if (!is_plain())
    for (auto& [key, cell] : cells)
      if (holders(key.first, key.second).size() > 1) cell.targets = targets_of(key.first);
  for (const TensorPlacement::Data* place : {&from_, copy_}) {
    if (place == nullptr) continue;
    const std::int64_t sum = place == &from_ ? sources_.sum_of(rank) : 0;
    for_each_cell_of(*place, rank, [&](const Classes& source) {
      cells[{source, sum}] = {targets_of(source), true};
    });
  }
  return cells;
}

TensorTransferOfRank PairPlan::of(Rank rank) const {
  std::deque<CellPlan> cells;
  std::vector<Entry> entries;
  std::map<Classes, std::int64_t> ahead_of;  // for each cell after the transfer
  for (auto& [key, cell] : cells_of(rank)) {
    std::vector<Shipment> all;
    if (cell.has_all || !is_plain()) {
      cells.push_back(plan(key.first, key.second, std::move(cell.targets)));
      all = shipments(cells.back());
    } else {
      cells.push_back({.source = key.first,
                       .holders = holders(key.first, 0),
                       .targets = std::move(cell.targets)});
      std::vector<std::int64_t> ahead;
      for (const CellTarget& target : cells.back().targets) {
        const auto [known, is_new] = ahead_of.try_emplace(target.cell, 0);
        if (is_new) {
          const auto ranks = receivers_.of(target.cell, 0);
          known->second = std::ranges::lower_bound(ranks, rank) - ranks.begin();
        }
        ahead.push_back(known->second);
      }
      all = stripes(cells.back(), rank, ahead);
    }
    for (const Shipment& shipment : all)
      if (shipment.sender == rank || shipment.receiver == rank)
        entries.push_back({&cells.back(), shipment});
  }
  const auto peer_of = [&](const Entry& e) {
    return e.shipment.sender == rank ? e.shipment.receiver : e.shipment.sender;
  };
  std::ranges::sort(entries, [&](const Entry& a, const Entry& b) {
    const auto order = [&](const Entry& e) {
      return std::tuple{e.shipment.step, e.shipment.is_added, peer_of(e)};
    };
    if (order(a) != order(b)) return order(a) < order(b);
    return order_in_message(a) < order_in_message(b);
  });
  TensorTransferOfRank result;
  Messages copies{*this, result.copies};
  Messages receives{*this, result.receives};
  Messages sends{*this, result.sends};
  for (const Entry& entry : entries) {
    if (entry.shipment.sender == entry.shipment.receiver)
      copies.add(entry, rank);
    else if (entry.shipment.receiver == rank)
      receives.add(entry, peer_of(entry));
    else
      sends.add(entry, peer_of(entry));
  }
  return result;
}

}  // namespace rankmesh::detail

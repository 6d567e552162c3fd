// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a transfer, and lower bounds of them.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "detail/plan_data.hpp"

namespace rankmesh {
namespace {

using detail::CellPlan;
using detail::CellTarget;
using detail::PairPlan;
using detail::Shipment;

// The least numbers of elements that move for a cell, in the first step and forwarded sums.
struct LeastOfCell {
  std::int64_t moved = 0;
  std::int64_t forwarded_sums = 0;
  std::int64_t between_nodes = 0;
};

// Without sums, an element is received once by every rank that needs it and does not have it, and
// once by every node that has such a rank and does not have the element. With sums, the plan of the
// last partial sum represents all partial sums. Each rank with a summand sends each element once;
// if a summand is on a rank that needs the sum, there is one message less. Every other rank that
// needs the sum receives it once. The nodes of the summands and of the sums must all be connected.
LeastOfCell least_of(const PairPlan& pair, const CellPlan& cell) {
  LeastOfCell least;
  const std::int64_t sums = pair.sources().sum_count();
  const bool has_sums = !pair.from().sums.empty();
  const std::vector<Rank> all = has_sums ? pair.sources().of_all_sums(cell.source) : cell.holders;
  std::set<std::int64_t> nodes_of_all;
  for (const Rank holder : all) nodes_of_all.insert(pair.node(holder));
  for (const CellTarget& target : cell.targets) {
    std::int64_t owners = 0;
    std::int64_t receivers = 0;
    std::set<std::int64_t> nodes;
    for (const Rank receiver : pair.receivers().of(target.cell, 0)) {
      ++receivers;
      owners += std::ranges::binary_search(all, receiver) ? 1 : 0;
      if (!nodes_of_all.contains(pair.node(receiver))) nodes.insert(pair.node(receiver));
    }
    if (has_sums) {
      least.moved += target.count * (sums - (owners > 0 ? 1 : 0));
      least.forwarded_sums += target.count * (receivers - 1);
      continue;
    }
    least.moved += target.count * (receivers - owners);
    least.between_nodes += target.count * std::ssize(nodes);
  }
  return least;
}

std::int64_t divided_up(std::int64_t amount, std::int64_t parts) {
  return amount / parts + (amount % parts != 0 ? 1 : 0);
}

}  // namespace

std::vector<TransferFlow> TransferPlan::flows() const {
  std::unordered_map<std::uint64_t, TransferFlow> by_ranks;
  for (std::size_t kind = 0; kind < data_->pairs.size(); ++kind) {
    const PairPlan& pair = data_->pairs[kind];
    const TensorTransfer& tensor = data_->tensors[data_->first_of_kind[kind]];
    pair.for_each_cell([&](const CellPlan& cell) {
      for (const Shipment& s : pair.shipments(cell)) {
        const bool is_forwarded = s.step == TransferStep::forward;
        const DataType type =
            s.sender == s.receiver ? tensor.from.type() : message_type(tensor, s.step);
        const std::int64_t bytes = (s.end - s.begin) * static_cast<std::int64_t>(size_of(type)) *
                                   data_->count_of_kind[kind];
        TransferFlow& flow = by_ranks[static_cast<std::uint64_t>(s.sender.value()) << 32 |
                                      static_cast<std::uint64_t>(s.receiver.value())];
        flow.sender = s.sender;
        flow.receiver = s.receiver;
        flow.bytes += bytes;
        if (is_forwarded) flow.forwarded_bytes += bytes;
      }
    });
  }
  std::vector<TransferFlow> flows;
  flows.reserve(by_ranks.size());
  for (const auto& [ranks, flow] : by_ranks) flows.push_back(flow);
  std::ranges::sort(flows, {}, [](const TransferFlow& f) {
    return std::pair{f.sender, f.receiver};
  });
  return flows;
}

TransferVolume TransferPlan::volume() const { return volume(flows()); }

TransferVolume TransferPlan::volume(std::span<const TransferFlow> flows) const {
  TransferVolume volume;
  std::unordered_map<std::int64_t, std::int64_t> sent;
  std::unordered_map<std::int64_t, std::int64_t> forwarded;
  std::unordered_map<std::int64_t, std::int64_t> received;
  for (const TransferFlow& flow : flows) {
    if (flow.sender == flow.receiver) {
      volume.copied_bytes += flow.bytes;
      continue;
    }
    volume.moved_bytes += flow.bytes;
    sent[flow.sender.value()] += flow.bytes - flow.forwarded_bytes;
    forwarded[flow.sender.value()] += flow.forwarded_bytes;
    received[flow.receiver.value()] += flow.bytes;
    if (data_->machine &&
        data_->pairs.front().node(flow.sender) != data_->pairs.front().node(flow.receiver))
      volume.between_nodes_bytes += flow.bytes;
  }
  const auto most = [](const auto& amounts, std::int64_t& bytes, Rank& rank) {
    for (const auto& [r, amount] : amounts)
      if (amount > bytes || (amount == bytes && r < rank.value())) {
        bytes = amount;
        rank = r;
      }
  };
  most(sent, volume.most_sent_bytes, volume.most_sending);
  most(forwarded, volume.most_forwarded_bytes, volume.most_forwarding);
  most(received, volume.most_received_bytes, volume.most_receiving);

  std::int64_t first_step = 0;
  std::unordered_set<std::int64_t> holders;
  for (std::size_t kind = 0; kind < data_->pairs.size(); ++kind) {
    const PairPlan& pair = data_->pairs[kind];
    const TensorTransfer& tensor = data_->tensors[data_->first_of_kind[kind]];
    const auto size_in = [&](TransferStep step) {
      return static_cast<std::int64_t>(size_of(message_type(tensor, step)));
    };
    const std::int64_t size = size_in(TransferStep::first);
    const std::int64_t count = data_->count_of_kind[kind];
    const auto last_sum = pair.sources().sum_count() - 1;
    pair.for_each_cell([&](const CellPlan& cell) {
      if (cell.sum == last_sum) {
        const LeastOfCell least = least_of(pair, cell);
        volume.least_moved_bytes +=
            (least.moved * size + least.forwarded_sums * size_in(TransferStep::forward)) * count;
        if (data_->machine) volume.least_between_nodes_bytes += least.between_nodes * size * count;
      }
      std::int64_t needed = 0;
      for (const detail::SenderChoice& choice : cell.choices) needed += choice.elements;
      first_step += needed * size * count;
      if (cell.holders.empty()) return;  // they are lost, and nobody needs the elements
      for (const Rank holder : cell.holders) holders.insert(holder.value());
      volume.least_most_sent_bytes =
          std::max(volume.least_most_sent_bytes,
                   divided_up(needed * count, std::ssize(cell.holders)) * size);
    });
  }
  if (!holders.empty())
    volume.least_most_sent_bytes =
        std::max(volume.least_most_sent_bytes, divided_up(first_step, std::ssize(holders)));
  return volume;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/route_planner.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "exchange/kernels/expert_rows.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::exchange::detail {
namespace {

using device::GatherRows;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t padded(std::int64_t rows, std::int64_t alignment) {
  return (rows + alignment - 1) / alignment * alignment;
}

}  // namespace

std::string DispatcherCall::name() const {
  return fmt::format("ExpertDispatcher{} over '{}'", function, group.name());
}

void DispatcherCall::refuse(std::string_view problem, std::string_view hint) const {
  throw UsageError{fmt::format("{} on rank {} of {} in the group: {}", name(),
                               group.rank_in_group().value(), group.size(), problem),
                   std::string{hint}};
}

RoutePlanner::RoutePlanner(const DispatcherCall& by, const ExpertMap& map,
                           const ExpertDispatcherOptions& options,
                           std::span<const std::int32_t> ids, std::int64_t top_k)
    : map_{map},
      alignment_{options.alignment},
      ranks_{by.group.size()},
      self_{by.group.rank_in_group().value()},
      local_slots_{map.slots_per_rank()},
      slot_of_choice_(ids.size(), -1),
      rows_to_slot_(at(map.slots())) {
  const auto choices = static_cast<std::int64_t>(ids.size());
  if (top_k < 1 || choices % top_k != 0)
    by.refuse(fmt::format("{} expert ids cannot be divided into top-{} choices", choices, top_k),
              "pass k ids for each token");
  route_.tokens_ = choices / top_k;
  route_.top_k_ = top_k;
  route_.experts_.assign(map.experts_of(self_).begin(), map.experts_of(self_).end());
  route_.is_direct_ = local_slots_ == 1;

  // The slots of an expert are taken in turn. Ranks begin at different slots, so that they do not
  // all send their first token to the same one.
  std::vector<std::int64_t> turn(at(map.experts()), self_);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::int32_t expert = ids[i];
    if (expert == -1) continue;
    if (expert < -1 || expert >= map.experts())
      by.refuse(fmt::format("token {} has the expert id {}", static_cast<std::int64_t>(i) / top_k,
                            expert),
                fmt::format("use ids from 0 to {}, or -1 for no choice", map.experts() - 1));
    const auto replicas = map.replicas(expert);
    const auto e = static_cast<std::size_t>(expert);
    const std::int32_t slot = replicas[static_cast<std::size_t>(turn[e]++) % replicas.size()];
    std::int64_t& rows = rows_to_slot_[static_cast<std::size_t>(slot)];
    if (options.capacity && rows >= *options.capacity) continue;
    slot_of_choice_[i] = slot;
    ++rows;
  }
  route_.dropped_ = std::ranges::count(slot_of_choice_, -1);
}

ExpertRoute RoutePlanner::plan(const std::vector<std::int64_t>& to_slot,
                               const std::vector<std::int64_t>& from_rank) && {
  place_rows(to_slot, from_rank);
  list_received_rows(from_rank);
  list_choices();
  return std::move(route_);
}

// Counts the rows that are exchanged with each rank, and finds the first row of each part. This
// rank's own rows are not exchanged.
void RoutePlanner::place_rows(const std::vector<std::int64_t>& to_slot,
                              const std::vector<std::int64_t>& from_rank) {
  first_sent_.resize(at(map_.slots()));
  first_row_.resize(at(ranks_ * local_slots_));
  route_.sent_.resize(at(ranks_));
  route_.received_.resize(at(ranks_));
  for (std::int64_t slot = 0; slot < map_.slots(); ++slot) {
    first_sent_[at(slot)] = route_.all_sent_;
    if (slot / local_slots_ == self_) continue;
    route_.sent_[at(slot / local_slots_)] += to_slot[at(slot)];
    route_.all_sent_ += to_slot[at(slot)];
  }
  std::int64_t end = 0;
  for (std::int64_t e = 0; e < local_slots_; ++e) {
    std::int64_t count = 0;
    for (std::int64_t r = 0; r < ranks_; ++r) {
      const std::int64_t rows = from_rank[at(r * local_slots_ + e)];
      first_row_[at(r * local_slots_ + e)] = end + count;
      count += rows;
      if (r == self_) continue;
      route_.received_[at(r)] += rows;
      route_.all_received_ += rows;
    }
    route_.counts_.push_back(count);
    end += padded(count, alignment_);
    route_.offsets_.push_back(end);
  }
}

// Rows arrive ordered by rank and slot, but the experts need them ordered by slot and rank. For
// each row of the experts, `place_` lists the received row that is copied to it. For each received
// row, `unplace_` lists the row of the experts that goes back. With one slot per rank the orders
// are the same, so the rows are received in their places.
void RoutePlanner::list_received_rows(const std::vector<std::int64_t>& from_rank) {
  route_.place_.assign(at(route_.offsets_.back()), GatherRows::zeros);
  route_.unplace_.resize(at(route_.is_direct_ ? 0 : route_.all_received_));
  std::int64_t received = 0;
  for (std::int64_t r = 0; r < ranks_; ++r) {
    if (r == self_) continue;
    for (std::int64_t e = 0; e < local_slots_; ++e) {
      const std::int64_t first = first_row_[at(r * local_slots_ + e)];
      for (std::int64_t i = 0; i < from_rank[at(r * local_slots_ + e)]; ++i, ++received) {
        route_.place_[at(first + i)] = route_.is_direct_ ? GatherRows::keep : received;
        if (!route_.is_direct_) route_.unplace_[at(received)] = first + i;
      }
    }
  }
}

// Lists the row of every choice: a row that is sent, or directly a row of this rank's experts.
void RoutePlanner::list_choices() {
  route_.pack_.assign(at(route_.all_sent_), GatherRows::zeros);
  route_.sum_.assign(slot_of_choice_.size(), GatherRows::zeros);
  std::vector<std::int64_t> next(at(map_.slots()));
  for (std::size_t i = 0; i < slot_of_choice_.size(); ++i) {
    const std::int64_t slot = slot_of_choice_[i];
    if (slot < 0) continue;
    const std::int64_t nth = next[at(slot)]++;
    const auto choice = static_cast<std::int64_t>(i);
    if (slot / local_slots_ == self_) {
      const std::int64_t row = first_row_[at(self_ * local_slots_ + slot % local_slots_)] + nth;
      route_.place_[at(row)] = route_.all_received_ + choice;
      route_.sum_[i] = route_.all_sent_ + row;
    } else {
      const std::int64_t row = first_sent_[at(slot)] + nth;
      route_.pack_[at(row)] = choice;
      route_.sum_[i] = row;
    }
  }
}

}  // namespace rankmesh::exchange::detail

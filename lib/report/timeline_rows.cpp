// SPDX-License-Identifier: BSD-3-Clause
#include "detail/timeline_rows.hpp"

#include <algorithm>
#include <charconv>
#include <tuple>

namespace rankmesh::report::detail {
namespace {

using record::Call;
using record::CallIndex;
using record::Record;
using record::Time;

/// Returns the numbers in `dp=0,tp=11`, so that 11 comes after 2.
std::vector<std::int64_t> numbers_in(const std::string& coordinates) {
  std::vector<std::int64_t> result;
  const char* const end = coordinates.data() + coordinates.size();
  for (const char* at = coordinates.data(); at < end; ++at) {
    if (*at != '=') continue;
    std::int64_t number = 0;
    std::from_chars(at + 1, end, number);
    result.push_back(number);
  }
  return result;
}

void add_arrows_of_meeting(const Timeline& timeline, const record::Meeting& meeting,
                           std::vector<Arrow>& arrows) {
  if (meeting.calls.size() < 2 || !meeting.agrees) return;
  const auto call_of = [&](CallIndex index) -> const Call& {
    return timeline.records[index.record].calls[index.call];
  };
  const Call& first = call_of(meeting.calls.front());
  const Awaited awaited = facts_of(first.descriptor.operation()).awaited;
  const auto place = [&](CallIndex index) {
    const Record& record = timeline.records[index.record];
    return record.groups[call_of(index).group].ranks.find(record.rank);
  };
  const auto begin = [&](CallIndex index) { return timeline.bar_of(index).begin; };
  const auto last = std::ranges::max(meeting.calls, {}, begin);
  const auto last_up_to = [&](CallIndex to) {
    return std::ranges::max(meeting.calls, {}, [&](CallIndex index) {
      return std::pair{place(index) <= place(to), begin(index)};
    });
  };
  const auto root = std::ranges::find_if(meeting.calls, [&](CallIndex index) {
    return place(index) == static_cast<std::int64_t>(first.descriptor.root());
  });
  if (has_root(first.descriptor.operation()) ? root == meeting.calls.end()
                                             : !meeting.has_all_members)
    return;
  for (const CallIndex& to : meeting.calls) {
    const CallIndex from = awaited == Awaited::root      ? *root
                           : awaited == Awaited::earlier ? last_up_to(to)
                                                         : last;
    if (to != from && (awaited != Awaited::all_by_root || to == *root))
      arrows.push_back({from, to});
  }
}

}  // namespace

std::vector<std::size_t> order_of_rows(std::span<const Record> records) {
  std::vector<std::tuple<std::int32_t, std::vector<std::int64_t>, Rank, std::size_t>> keys;
  for (std::size_t r = 0; r < records.size(); ++r)
    keys.emplace_back(records[r].node, numbers_in(records[r].coordinates), records[r].rank, r);
  std::ranges::sort(keys);
  std::vector<std::size_t> order;
  for (const auto& key : keys) order.push_back(std::get<3>(key));
  return order;
}

std::size_t lanes_of(std::span<const Bar> bars) {
  std::size_t lanes = 1;
  for (const Bar& bar : bars) lanes = std::max(lanes, bar.lane + 1);
  return lanes;
}

Timeline::Timeline(std::span<const Record> of) : records{of}, matching{of} {
  const FirstEnds ends = first_ends(records, matching);
  for (std::size_t r = 0; r < records.size(); ++r) {
    bars.push_back(bars_of(records, r, matching, ends));
    places.emplace_back(records[r].calls.size());
    for (std::size_t b = 0; b < bars[r].size(); ++b)
      if (bars[r][b].call != Bar::wait) places[r][bars[r][b].call] = b;
  }
}

std::optional<Time> Timeline::begin() const {
  std::optional<Time> first;
  for (const auto& of_rank : bars)
    if (!of_rank.empty())
      first = std::min(first.value_or(of_rank.front().begin), of_rank.front().begin);
  return first;
}

std::vector<Arrow> arrows_of(const Timeline& timeline) {
  std::vector<Arrow> arrows;
  for (const record::Meeting& meeting : timeline.matching.meetings())
    add_arrows_of_meeting(timeline, meeting, arrows);
  for (const record::Message& message : timeline.matching.messages())
    arrows.push_back({message.send, message.receive});
  return arrows;
}

std::string activity_of(const Record& record) {
  if (record.wait) return record.wait->text;
  const Call* newest = nullptr;
  for (const Call& call : record.calls) {
    // A blocking call is the activity of the rank, even if other operations are in flight.
    if (call.is_over() || call.is_captured || call.group >= record.groups.size()) continue;
    if (newest == nullptr || !call.is_async || newest->is_async) newest = &call;
  }
  return newest == nullptr ? std::string{} : record::to_string(record, *newest);
}

}  // namespace rankmesh::report::detail

// SPDX-License-Identifier: BSD-3-Clause
// The times of calls that were not recorded.
#include <algorithm>
#include <optional>
#include <utility>

#include "detail/timeline_rows.hpp"

namespace rankmesh::report::detail {
namespace {

using record::Call;
using record::Record;
using record::Time;

/// A call without times ended before the rank noticed that it would have to wait. Therefore the
/// call was short.
constexpr double longest_estimate = 10'000;
/// The length of a call whose begin follows from the ends of the calls of the other members.
constexpr Time shortest_call = 500;

/// A moment at which the record knows where the rank was.
struct Known {
  std::optional<Time> from;   ///< when the rank reached the call or mark
  std::optional<Time> until;  ///< when it went on
};

/// Whether the rank goes on while the call runs. Calls of NCCL are queued on a stream.
bool runs_beside(const Call& call) {
  return call.is_async || call.carrier == record::Carrier::nccl;
}

/// Returns when the rank reached a call without times, from the times of the other members. If all
/// members must wait for each other, and the other members waited, they left when this rank
/// arrived.
std::optional<Time> inferred_arrival(const Call& call, record::CallIndex index,
                                     const record::Matching& matching, const FirstEnds& ends) {
  const std::size_t number = matching.meeting_of(index);
  if (number == record::Matching::none || !record::synchronises(call.descriptor) ||
      runs_beside(call))
    return std::nullopt;
  std::optional<Time> first = ends[number];
  // The rank's own part of the call takes a moment.
  if (first) *first -= shortest_call;
  return first;
}

/// The calls and marks of a rank in the order in which it made them.
struct Entry {
  std::uint64_t sequence = 0;
  std::size_t call = Bar::wait;  ///< `wait`: a mark
  Known known{};
  std::optional<Time> inferred{};
};

std::vector<Entry> entries_of(std::span<const Record> records, std::size_t index,
                              const record::Matching& matching, const FirstEnds& ends) {
  const Record& record = records[index];
  std::vector<Entry> entries;
  for (std::size_t c = 0; c < record.calls.size(); ++c) {
    const Call& call = record.calls[c];
    Entry entry{.sequence = call.sequence, .call = c};
    if (call.begin || call.end)
      entry.known = {call.begin ? call.begin : call.end,
                     call.end && !runs_beside(call) ? call.end : call.begin};
    else
      entry.inferred = inferred_arrival(call, {index, c}, matching, ends);
    entries.push_back(entry);
  }
  for (const record::Mark& mark : record.marks)
    entries.push_back({.sequence = mark.sequence, .known = {mark.time, mark.time}});
  std::ranges::stable_sort(entries, {}, &Entry::sequence);
  return entries;
}

/// Spreads the calls without times over the gaps between those with times.
class Estimates {
 public:
  Estimates(const Record& record, std::vector<Entry> entries)
      : record_{record}, entries_{std::move(entries)}, bars_(record.calls.size()) {
    accept_inferred();
    gap_ = mean_gap();
  }

  std::vector<Bar> bars() && {
    std::size_t first = 0;  // of the entries that wait for a time
    std::optional<Time> from;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = entries_[i];
      if (!entry.known.from) continue;
      spread(first, i, from, entry.known.from);
      const Time next = std::max(*entry.known.from, entry.known.until.value_or(*entry.known.from));
      from = std::max(from.value_or(next), next);
      first = i + 1;
    }
    spread(first, entries_.size(), from, std::nullopt);
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].call != Bar::wait) place_known(i);
    return std::move(bars_);
  }

 private:
  /// Uses an inferred time if it lies between the times before and after it.
  void accept_inferred() {
    std::vector<std::optional<Time>> next(entries_.size() + 1);
    for (std::size_t i = entries_.size(); i-- > 0;)
      next[i] = entries_[i].known.from ? entries_[i].known.from : next[i + 1];
    std::optional<Time> before;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      Entry& entry = entries_[i];
      const Time latest = next[i + 1].value_or(record_.read_at);
      if (entry.inferred && *entry.inferred >= before.value_or(*entry.inferred) &&
          *entry.inferred <= latest)
        entry.known = {entry.inferred, std::min(*entry.inferred + shortest_call, latest)};
      else
        entry.inferred.reset();
      if (entry.known.until) before = entry.known.until;
    }
  }

  /// Returns the mean distance of the entries between the first and the last known time.
  [[nodiscard]] Time mean_gap() const {
    std::optional<std::size_t> first, last;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].known.from) continue;
      if (!first) first = i;
      last = i;
    }
    if (!first || *first == *last) return 1000;
    const Time distance = *entries_[*last].known.from - *entries_[*first].known.from;
    return std::max<Time>(distance / static_cast<Time>(*last - *first), 1);
  }

  /// Places the entries [first, last) between two times. Each takes the middle half of its share.
  void spread(std::size_t first, std::size_t last, std::optional<Time> from,
              std::optional<Time> until) {
    const auto count = static_cast<Time>(last - first);
    if (count == 0) return;
    if (!from) from = until.value_or(record_.read_at) - count * gap_;
    if (!until) until = std::min(*from + count * gap_, record_.read_at);
    const double share =
        static_cast<double>(std::max<Time>(*until - *from, 0)) / static_cast<double>(count);
    for (std::size_t i = first; i < last; ++i) {
      const double begin = (static_cast<double>(i - first) + 0.25) * share;
      Bar& bar = bars_[entries_[i].call];
      bar = {.call = entries_[i].call,
             .begin = *from + static_cast<Time>(begin),
             .end = *from + static_cast<Time>(begin + std::min(share / 2, longest_estimate)),
             .is_begin_estimated = true,
             .is_end_estimated = true};
      const Call& call = record_.calls[bar.call];
      if (!call.is_over()) bar.end = std::max(bar.begin, record_.read_at);
    }
  }

  /// Places a call that has a time, or whose time follows from other ranks.
  void place_known(std::size_t i) {
    const Entry& entry = entries_[i];
    if (!entry.known.from) return;
    const Call& call = record_.calls[entry.call];
    Bar bar{.call = entry.call, .begin = *entry.known.from, .end = *entry.known.from};
    bar.is_begin_estimated = !call.begin;
    bar.is_end_estimated = call.is_over() && !call.end;
    if (!call.is_over())
      bar.end = record_.read_at;
    else if (call.end)
      bar.end = *call.end;
    else if (entry.inferred)
      bar.end = *entry.known.until;
    else if (!call.is_captured)
      bar.end = bar.begin + std::min(gap_, time_after(i) - bar.begin) / 2;
    bar.end = std::max(bar.begin, bar.end);
    bars_[entry.call] = bar;
  }

  /// Returns the next known time after an entry.
  [[nodiscard]] Time time_after(std::size_t i) const {
    const Time own = *entries_[i].known.from;
    for (std::size_t next = i + 1; next < entries_.size(); ++next)
      if (const auto& time = entries_[next].known.from) return std::max(own, *time);
    return std::max(own, record_.read_at);
  }

  const Record& record_;
  std::vector<Entry> entries_;
  std::vector<Bar> bars_;
  Time gap_ = 1000;
};

/// Calls of NCCL in one group run one after the other.
void serialise_device_calls(const Record& record, std::vector<Bar>& bars) {
  std::vector<std::optional<Time>> ends(record.groups.size());
  for (Bar& bar : bars) {
    const Call& call = record.calls[bar.call];
    if (call.carrier != record::Carrier::nccl || call.group >= ends.size()) continue;
    std::optional<Time>& last = ends[call.group];
    if (last && *last > bar.begin) bar.begin = std::min(*last, bar.end);
    last = bar.end;
  }
}

void assign_lanes(const Record& record, std::vector<Bar>& bars) {
  std::vector<Time> ends;
  for (Bar& bar : bars) {
    std::size_t lane = bar.call != Bar::wait && runs_beside(record.calls[bar.call]) ? 1 : 0;
    while (lane < ends.size() && ends[lane] > bar.begin) ++lane;
    if (lane >= ends.size()) ends.resize(lane + 1, std::numeric_limits<Time>::min());
    ends[lane] = bar.end;
    bar.lane = lane;
  }
}

}  // namespace

FirstEnds first_ends(std::span<const Record> records, const record::Matching& matching) {
  FirstEnds ends;
  for (const record::Meeting& meeting : matching.meetings()) {
    std::optional<Time>& first = ends.emplace_back();
    if (!meeting.agrees) continue;
    for (const record::CallIndex& index : meeting.calls) {
      const Call& call = records[index.record].calls[index.call];
      if (call.begin && call.end && call.state == record::State::ended)
        first = std::min(first.value_or(*call.end), *call.end);
    }
  }
  return ends;
}

std::vector<Bar> bars_of(std::span<const Record> records, std::size_t index,
                         const record::Matching& matching, const FirstEnds& ends) {
  const Record& record = records[index];
  std::vector<Bar> bars = Estimates{record, entries_of(records, index, matching, ends)}.bars();
  serialise_device_calls(record, bars);
  // A wait inside a call is a part of the bar of the call.
  const bool is_in_call = std::ranges::any_of(record.calls, [](const Call& call) {
    return !runs_beside(call) && !call.is_over() && !call.is_captured;
  });
  if (record.wait && !is_in_call)
    bars.push_back({.call = Bar::wait,
                    .begin = record.wait->since,
                    .end = std::max(record.wait->since, record.read_at)});
  std::ranges::stable_sort(bars, {}, &Bar::begin);
  assign_lanes(record, bars);
  return bars;
}

}  // namespace rankmesh::report::detail

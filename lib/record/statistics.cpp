// SPDX-License-Identifier: BSD-3-Clause
#include "record/statistics.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "rankmesh/record/format.hpp"
#include "record/matching.hpp"

namespace rankmesh::record {
namespace {

// Without Record::has_all_times, a time is taken for every call at a multiple of this position.
using format::sampled_every;

/// The part of a record that is new since the earlier reading.
struct Interval {
  bool is_known = false;           ///< Whether the earlier reading had this rank.
  std::uint64_t calls_before = 0;  ///< The positions up to here are old.
  Time begin = 0;
  double factor = 1;  ///< Calls made by calls that are left.
  /// The time from which on the record contains all calls.
  Time covered_from = 0;
};

Interval interval_of(const Record& before, const Record& now) {
  Interval result{.is_known = true, .calls_before = before.calls_made, .begin = before.read_at};
  result.covered_from = before.read_at;
  const auto is_new = [&](const auto& entry) { return entry.sequence > before.calls_made; };
  const auto left =
      std::ranges::count_if(now.calls, is_new) + std::ranges::count_if(now.marks, is_new);
  const auto made = static_cast<std::int64_t>(now.calls_made - before.calls_made);
  if (made <= left || left == 0) return result;
  result.factor = static_cast<double>(made) / static_cast<double>(left);
  for (const Call& call : now.calls) {
    if (!call.begin) continue;
    result.covered_from = std::max(before.read_at, *call.begin);
    break;
  }
  return result;
}

std::vector<Interval> intervals_of(std::span<const Record> before, std::span<const Record> now) {
  const auto key = [](const Record& record) {
    return std::tuple{record.mesh_key, record.rank, record.process_id};
  };
  std::map<std::tuple<std::uint64_t, Rank, std::int64_t>, const Record*> known;
  for (const Record& record : before) known[key(record)] = &record;
  std::vector<Interval> result;
  for (const Record& record : now) {
    const auto found = known.find(key(record));
    const bool is_usable = found != known.end() && found->second->calls_made <= record.calls_made &&
                           found->second->read_at < record.read_at;
    result.push_back(is_usable ? interval_of(*found->second, record) : Interval{});
  }
  return result;
}

/// Returns how long a call blocked its rank within the part that the record covers.
Time waited_in(const Record& record, const Call& call, const Interval& interval) {
  const bool blocks = !call.is_async && !call.is_captured && call.carrier != Carrier::nccl &&
                      !call.descriptor.has(CallDescriptor::on_device);
  if (!blocks || !call.begin || (call.is_over() && !call.end)) return 0;
  const Time end = std::min(call.end.value_or(record.read_at), record.read_at);
  return std::max<Time>(end - std::max(*call.begin, interval.covered_from), 0);
}

bool waited(const Record& record, const Call& call) {
  return call.begin && (record.has_all_times || call.sequence % sampled_every != 0);
}

/// Finds the last member of a collective.
class LastMember {
 public:
  LastMember(std::span<const Record> records, const Meeting& meeting)
      : records_{records}, meeting_{meeting} {
    for (std::size_t i = 0; i < meeting.calls.size(); ++i) {
      if (!call(i).begin) without_begin_.push_back(i);
      if (waited(record(i), call(i))) ++waiting_;
    }
  }

  /// Returns whether the collective counts: it is over, and a member may have waited.
  [[nodiscard]] bool counts() const {
    if (waiting_ == 0 || meeting_.calls.size() < 2) return false;
    for (std::size_t i = 0; i < meeting_.calls.size(); ++i)
      if (call(i).state != State::ended || call(i).is_captured) return false;
    return true;
  }

  /// Returns the position of the last member in the meeting, or nothing if it is not known.
  [[nodiscard]] std::optional<std::size_t> position() const {
    if (without_begin_.empty()) return latest();
    if (without_begin_.size() == 1 && waiting_ + 1 == meeting_.calls.size())
      return without_begin_.front();
    return std::nullopt;
  }

  /// Returns how long the others waited for the last member.
  [[nodiscard]] Time caused_by(std::size_t last) const {
    std::optional<Time> arrival = call(last).begin;
    if (!arrival)
      for (std::size_t i = 0; i < meeting_.calls.size(); ++i)
        if (const auto& end = call(i).end) arrival = std::min(arrival.value_or(*end), *end);
    if (!arrival) return 0;
    Time sum = 0;
    for (std::size_t i = 0; i < meeting_.calls.size(); ++i)
      if (i != last && call(i).begin) sum += std::max<Time>(*arrival - *call(i).begin, 0);
    return sum;
  }

 private:
  [[nodiscard]] const Record& record(std::size_t i) const {
    return records_[meeting_.calls[i].record];
  }
  [[nodiscard]] const Call& call(std::size_t i) const {
    return record(i).calls[meeting_.calls[i].call];
  }

  [[nodiscard]] std::optional<std::size_t> latest() const {
    std::size_t last = 0;
    for (std::size_t i = 1; i < meeting_.calls.size(); ++i)
      if (*call(i).begin > *call(last).begin) last = i;
    for (std::size_t i = 0; i < meeting_.calls.size(); ++i) {
      if (i == last) continue;
      const Time error = record(i).node == record(last).node
                             ? 0
                             : record(i).clock_error + record(last).clock_error;
      if (*call(last).begin - *call(i).begin <= error) return std::nullopt;
    }
    return last;
  }

  std::span<const Record> records_;
  const Meeting& meeting_;
  std::vector<std::size_t> without_begin_;
  std::size_t waiting_ = 0;
};

using Families = std::map<std::string, FamilyActivity>;

void add_calls(const Record& record, const Interval& interval, Families& families) {
  std::set<std::string> own;
  for (const Group& group : record.groups) own.insert(group.names.begin(), group.names.end());
  for (const std::string& name : own) {
    FamilyActivity& family = families[name];
    ++family.ranks;
    family.elapsed += record.read_at - interval.begin;
    family.observed += record.read_at - interval.covered_from;
    family.is_extrapolated = family.is_extrapolated || interval.factor > 1;
  }
  for (const Call& call : record.calls) {
    const auto found = families.find(family_of(record, call));
    if (found == families.end()) continue;
    found->second.waited += waited_in(record, call, interval);
    if (call.sequence <= interval.calls_before) continue;
    found->second.calls += interval.factor;
    found->second.bytes += interval.factor * static_cast<double>(bytes_of(record, call));
  }
}

void add_last_members(std::span<const Record> now, const std::vector<Interval>& intervals,
                      Families& families) {
  const Matching matching{now};
  for (const Meeting& meeting : matching.meetings()) {
    const CallIndex first = meeting.calls.front();
    const Call& call = now[first.record].calls[first.call];
    if (!meeting.has_all_members || !meeting.agrees || !synchronises(call.descriptor)) continue;
    const auto is_new = [&](CallIndex index) {
      const Interval& interval = intervals[index.record];
      return interval.is_known &&
             now[index.record].calls[index.call].sequence > interval.calls_before;
    };
    const LastMember last{now, meeting};
    const auto found = families.find(family_of(now[first.record], call));
    if (found == families.end() || !last.counts()) continue;
    const auto position = last.position();
    // A collective belongs to the interval in which its last member made the call.
    if (!is_new(position ? meeting.calls[*position] : meeting.calls.front())) continue;
    if (!position) {
      ++found->second.undecided;
      continue;
    }
    ++found->second.decided;
    Lateness& lateness = found->second.last[meeting.calls[*position].record];
    ++lateness.times;
    lateness.caused += last.caused_by(*position);
  }
}

}  // namespace

std::optional<std::size_t> FamilyActivity::most_often_last() const {
  const auto most = std::ranges::max_element(last, {}, [](const auto& entry) {
    return std::tuple{entry.second.times, entry.second.caused};
  });
  if (most == last.end()) return std::nullopt;
  return most->first;
}

JobActivity activity_between(std::span<const Record> before, std::span<const Record> now) {
  const std::vector<Interval> intervals = intervals_of(before, now);
  Families families;
  JobActivity result;
  std::int64_t ranks = 0;
  for (std::size_t r = 0; r < now.size(); ++r) {
    if (!intervals[r].is_known) continue;
    ++ranks;
    result.seconds += static_cast<double>(now[r].read_at - intervals[r].begin) / 1e9;
    add_calls(now[r], intervals[r], families);
  }
  if (ranks > 0) result.seconds /= static_cast<double>(ranks);
  add_last_members(now, intervals, families);
  for (auto& [name, family] : families) {
    family.name = name;
    result.families.push_back(std::move(family));
  }
  return result;
}

}  // namespace rankmesh::record

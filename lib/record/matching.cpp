// SPDX-License-Identifier: BSD-3-Clause
#include "record/matching.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace rankmesh::record {
namespace {

/// A collective call, with the key that it shares with the calls of the other members.
struct KeyedCall {
  std::uint64_t mesh, group, number;
  CallIndex index;

  [[nodiscard]] auto key() const { return std::tuple{mesh, group, number}; }
};

std::vector<KeyedCall> keyed_collectives(std::span<const Record> records) {
  std::vector<KeyedCall> result;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const Record& record = records[r];
    for (std::size_t c = 0; c < record.calls.size(); ++c) {
      const Call& call = record.calls[c];
      if (call.number == 0 || call.is_captured || call.group >= record.groups.size()) continue;
      result.push_back({record.mesh_key, record.groups[call.group].identity, call.number, {r, c}});
    }
  }
  // Stable: the calls of a meeting stay in the order of the records.
  std::ranges::stable_sort(result, {}, [](const KeyedCall& call) { return call.key(); });
  return result;
}

const Call& call_at(std::span<const Record> records, CallIndex index) {
  return records[index.record].calls[index.call];
}

/// The mesh, the group, the member that sends, the member that receives, and the tag.
using Channel = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, int>;

/// The calls at both ends of a channel, in the order in which the ranks made them.
struct Ends {
  std::vector<CallIndex> sends, receives;
};

void add_message_of(const Record& record, CallIndex index, std::map<Channel, Ends>& channels) {
  const Call& call = record.calls[index.call];
  const CallDescriptor& descriptor = call.descriptor;
  const Operation operation = descriptor.operation();
  if (!is_point_to_point(operation) || call.is_captured || call.is_cancelled ||
      call.group >= record.groups.size())
    return;
  const Group& group = record.groups[call.group];
  const std::int64_t found = group.ranks.find(record.rank);
  if (found < 0) return;
  const auto self = static_cast<std::uint64_t>(found);
  if (operation != Operation::recv)
    channels[{record.mesh_key, group.identity, self, descriptor.peer(), descriptor.tag()}]
        .sends.push_back(index);
  if (operation != Operation::send)
    channels[{record.mesh_key, group.identity, descriptor.source(), self, descriptor.tag()}]
        .receives.push_back(index);
}

/// For each two records, finds the first collective that synchronises both.
class FirstMeetings {
 public:
  /// Positions in the calls of two records.
  using Positions = std::optional<std::pair<std::size_t, std::size_t>>;

  FirstMeetings(std::span<const Record> records, const Matching& matching)
      : records_{records}, matching_{matching} {}

  Positions of(std::size_t a, std::size_t b) {
    const auto [place, is_new] = known_.try_emplace({a, b});
    if (is_new) place->second = find(a, b);
    return place->second;
  }

 private:
  [[nodiscard]] Positions find(std::size_t a, std::size_t b) const {
    const std::vector<Call>& calls = records_[a].calls;
    for (std::size_t c = 0; c < calls.size(); ++c) {
      if (!synchronises(calls[c].descriptor)) continue;
      const std::size_t number = matching_.meeting_of({a, c});
      if (number == Matching::none || !matching_.meetings()[number].agrees) continue;
      for (const CallIndex& other : matching_.meetings()[number].calls)
        if (other.record == b) return std::pair{c, other.call};
    }
    return std::nullopt;
  }

  std::span<const Record> records_;
  const Matching& matching_;
  std::map<std::pair<std::size_t, std::size_t>, Positions> known_;
};

/// Removes the calls before a position.
void drop_before(std::size_t position, std::vector<CallIndex>& calls) {
  std::erase_if(calls, [&](CallIndex index) { return index.call < position; });
}

/// Returns whether the n-th send may belong to the n-th receive for each n.
bool is_plausible(std::span<const Record> records, const Ends& ends, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Record& sender = records[ends.sends[i].record];
    const Record& receiver = records[ends.receives[i].record];
    const Call& send = sender.calls[ends.sends[i].call];
    const Call& receive = receiver.calls[ends.receives[i].call];
    // The descriptor of send_recv describes the sent message.
    const bool is_described = receive.descriptor.operation() == Operation::recv;
    if (is_described && (send.descriptor.count != receive.descriptor.count ||
                         send.descriptor.type() != receive.descriptor.type()))
      return false;
    const Time tolerance = sender.clock_error + receiver.clock_error;
    if (send.begin && receive.end && receive.state == State::ended &&
        *receive.end + tolerance < *send.begin)
      return false;
  }
  return true;
}

/// Pairs sends with receives; `matching` knows the meetings already.
std::vector<Message> match_messages(std::span<const Record> records, const Matching& matching) {
  std::map<Channel, Ends> channels;
  for (std::size_t r = 0; r < records.size(); ++r)
    for (std::size_t c = 0; c < records[r].calls.size(); ++c)
      add_message_of(records[r], {r, c}, channels);

  FirstMeetings first_meetings{records, matching};
  std::vector<Message> result;
  for (auto& [channel, ends] : channels) {
    if (ends.sends.empty() || ends.receives.empty()) continue;
    const std::size_t sender = ends.sends.front().record;
    const std::size_t receiver = ends.receives.front().record;
    const bool is_certain = is_complete(records[sender]) && is_complete(records[receiver]);
    if (!is_certain) {
      const auto positions = first_meetings.of(sender, receiver);
      if (!positions) continue;
      drop_before(positions->first, ends.sends);
      drop_before(positions->second, ends.receives);
    }
    const std::size_t count = std::min(ends.sends.size(), ends.receives.size());
    if (!is_certain && !is_plausible(records, ends, count)) continue;
    for (std::size_t i = 0; i < count; ++i)
      result.push_back({ends.sends[i], ends.receives[i], is_certain});
  }
  return result;
}

}  // namespace

Matching::Matching(std::span<const Record> records) {
  for (const Record& record : records) meeting_of_.emplace_back(record.calls.size(), none);
  const std::vector<KeyedCall> calls = keyed_collectives(records);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const KeyedCall& call = calls[i];
    if (i == 0 || calls[i - 1].key() != call.key()) meetings_.emplace_back();
    Meeting& meeting = meetings_.back();
    const Call& first =
        call_at(records, meeting.calls.empty() ? call.index : meeting.calls.front());
    meeting.agrees =
        meeting.agrees && first.descriptor.matches(call_at(records, call.index).descriptor);
    meeting.calls.push_back(call.index);
    const Record& record = records[call.index.record];
    const std::int64_t size = record.groups[call_at(records, call.index).group].size;
    meeting.has_all_members = std::ssize(meeting.calls) == size;
    meeting_of_[call.index.record][call.index.call] = meetings_.size() - 1;
  }
  messages_ = match_messages(records, *this);
}

bool synchronises(const CallDescriptor& descriptor) {
  const Operation operation = descriptor.operation();
  if (facts_of(operation).awaited != Awaited::all) return false;
  return !has_data(operation) || (descriptor.count > 0 && !descriptor.has(CallDescriptor::blocks));
}

std::int64_t bytes_of(const Record& record, const Call& call) {
  const CallDescriptor& descriptor = call.descriptor;
  if (!has_data(descriptor.operation())) return 0;
  const auto element = static_cast<std::int64_t>(
      descriptor.has(CallDescriptor::user) ? 1 : size_of(descriptor.type()));
  const bool has_a_block_per_member =
      (gathers(descriptor.operation()) || scatters(descriptor.operation())) &&
      !descriptor.has(CallDescriptor::blocks);
  const std::int64_t blocks = has_a_block_per_member && call.group < record.groups.size()
                                  ? record.groups[call.group].size
                                  : 1;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(descriptor.count, element, &bytes) ||
      __builtin_mul_overflow(bytes, blocks, &bytes))
    return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(bytes, 0);
}

const std::string& family_of(const Record& record, const Call& call) {
  static const std::string unknown = "(unknown group)";
  if (call.group >= record.groups.size()) return unknown;
  const std::vector<std::string>& names = record.groups[call.group].names;
  const std::size_t family = call.descriptor.name_index();
  return family < names.size() ? names[family] : unknown;
}

}  // namespace rankmesh::record

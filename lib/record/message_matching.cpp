// SPDX-License-Identifier: BSD-3-Clause
#include "detail/message_matching.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace rankmesh::record::detail {
namespace {

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

}  // namespace

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

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/messages.hpp"

#include <algorithm>

namespace rankmesh::record::detail {
namespace {

std::optional<MessageEnd> end_of(const Job& job, std::size_t node, const Call& call,
                                 std::uint64_t other, bool is_send) {
  const std::size_t group = job.group_of(node, call);
  const std::optional<Rank> rank = job.rank_of_member(group, other);
  if (!rank || *rank == job.rank(node)) return std::nullopt;
  const std::size_t other_node = job.find(*rank);
  // NCCL matches messages only by their order.
  const bool has_tag = !call.descriptor.has(CallDescriptor::on_device);
  return MessageEnd{{group, is_send ? node : other_node, is_send ? other_node : node,
                     has_tag ? call.descriptor.tag() : -1},
                    *rank,
                    is_send};
}

// Whether an end of a stream is in a call that may be the match of a message whose position is not
// known.
bool has_open_end(const Job& job, std::size_t node, const std::vector<std::uint32_t>& calls) {
  return std::ranges::any_of(calls, [&](std::uint32_t i) {
    const Call& call = job.record(node).calls[i];
    return !call.is_over() && !call.is_captured;
  });
}

}  // namespace

std::size_t StreamKeyHash::operator()(const StreamKey& key) const {
  std::uint64_t hash = key.group;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(key.sender), static_cast<std::uint64_t>(key.receiver),
        static_cast<std::uint64_t>(key.tag)})
    hash = (hash ^ part) * 0x9e3779b97f4a7c15U, hash ^= hash >> 29;
  return hash;
}

Messages::Messages(const Job& job) {
  for (std::size_t node = 0; node < job.size(); ++node) {
    const std::vector<Call>& calls = job.record(node).calls;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (!is_point_to_point(calls[i].descriptor.operation())) continue;
      for (const MessageEnd& end : ends_of(job, node, calls[i])) {
        Stream& stream = streams_[end.key];
        (end.is_send ? stream.sends : stream.receives).push_back(static_cast<std::uint32_t>(i));
      }
    }
  }
}

std::vector<MessageEnd> Messages::ends_of(const Job& job, std::size_t node, const Call& call) {
  std::vector<MessageEnd> ends;
  if (call.is_cancelled) return ends;  // no message has reached it
  const Operation operation = call.descriptor.operation();
  if (operation == Operation::recv || operation == Operation::send_recv) {
    const bool is_receive = operation == Operation::recv;
    const std::uint64_t from = is_receive ? call.descriptor.peer() : call.descriptor.source();
    if (const auto end = end_of(job, node, call, from, false)) ends.push_back(*end);
  }
  if (operation == Operation::send || operation == Operation::send_recv)
    if (const auto end = end_of(job, node, call, call.descriptor.peer(), true))
      ends.push_back(*end);
  return ends;
}

std::size_t Messages::position_of(const MessageEnd& end, std::size_t call) const {
  const auto at = streams_.find(end.key);
  if (at == streams_.end()) return 0;
  const std::vector<std::uint32_t>& own = end.is_send ? at->second.sends : at->second.receives;
  const auto found = std::ranges::lower_bound(own, call);
  return found == own.end() || *found != call ? 0
                                              : static_cast<std::size_t>(found - own.begin()) + 1;
}

const Call* Messages::other_call(const Job& job, const MessageEnd& end, std::size_t call) const {
  const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
  const std::size_t position = position_of(end, call);
  if (other == none || position == 0) return nullptr;
  const Stream& stream = streams_.at(end.key);
  const std::vector<std::uint32_t>& calls = end.is_send ? stream.receives : stream.sends;
  return position > calls.size() ? nullptr : &job.record(other).calls[calls[position - 1]];
}

Messages::Match Messages::match_of(const Job& job, const MessageEnd& end, std::size_t call) const {
  const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
  if (other == none) return Match::unknown;
  const auto at = streams_.find(end.key);
  if (at == streams_.end()) return Match::unknown;
  if (job.is_complete(end.key.sender) && job.is_complete(end.key.receiver))
    return other_call(job, end, call) != nullptr ? Match::made : Match::not_made;
  const auto& theirs = end.is_send ? at->second.receives : at->second.sends;
  return has_open_end(job, other, theirs) ? Match::made : Match::unknown;
}

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "detail/sentences.hpp"
#include "detail/wait_graph.hpp"

namespace rankmesh::record::detail {
namespace {

bool is_open(const Call& call) { return !call.is_over() && !call.is_captured; }

// Whether the rank has given up its part of the calls that it has made.
bool has_left(const Record& record) {
  return record.presence == Presence::failed || record.presence == Presence::destroyed;
}

// Whether `text` contains `part`, and it is not a part of a longer name or number.
bool has_words(const std::string& text, const std::string& part) {
  const auto goes_on = [](char c) {
    return c == '_' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z');
  };
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    const std::size_t end = at + part.size();
    if ((at == 0 || !goes_on(text[at - 1])) && (end == text.size() || !goes_on(text[end])))
      return true;
  }
  return false;
}

// Whether the rank waits until any of several operations ends, as wait_any() in group/ writes it.
bool waits_for_any(const Record& record) {
  return record.wait && record.wait->text.starts_with("wait_any of ");
}

// Whether the rank's wait names this message, as message_point() in group/ writes it.
bool names_message(const Record& record, const Call& call, const std::string& name) {
  const CallDescriptor& descriptor = call.descriptor;
  const RankSet& ranks = record.groups[call.group].ranks;
  if (ranks.empty()) return has_words(record.wait->text, name);  // the list was too long
  const auto rank = [&](std::uint64_t member) {
    const auto index = static_cast<std::int64_t>(member);
    return index < ranks.size() ? ranks[index].value() : -1;
  };
  if (descriptor.operation() == Operation::send_recv)
    return has_words(record.wait->text,
                     fmt::format("{} to rank {} from rank {}", name, rank(descriptor.peer()),
                                 rank(descriptor.source())));
  const bool sends = descriptor.operation() == Operation::send;
  return has_words(record.wait->text,
                   fmt::format("{} {} rank {} (tag {})", name, sends ? "to" : "from",
                               rank(descriptor.peer()), descriptor.tag()));
}

// The oldest asynchronous call that the rank's wait names, as an index in Record::calls.
std::size_t awaited_call(const Record& record) {
  if (waits_for_any(record)) return none;
  for (std::size_t i = 0; i < record.calls.size(); ++i) {
    const Call& call = record.calls[i];
    if (!call.is_async || !is_open(call) || call.group >= record.groups.size()) continue;
    const std::string start = name_of_call(record, call);
    const bool is_named =
        call.number == 0 ? names_message(record, call, start)
                         : has_words(record.wait->text, start) &&
                               has_words(record.wait->text, "call " + std::to_string(call.number));
    if (is_named) return i;
  }
  return none;
}

}  // namespace

WaitGraph::WaitGraph(const Job& job, const Messages& messages,
                     const std::vector<std::uint64_t>& differing)
    : nodes(job.size()), job_{job}, messages_{messages} {
  are_all_halted_ = true;
  for (std::size_t node = 0; node < job.size(); ++node) {
    const Process process = job.record(node).process;
    last_read_ = std::max(last_read_, job.record(node).read_at);
    if (process != Process::stopped && process != Process::ended) are_all_halted_ = false;
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) find_state(node);
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    find_point(node);
    const NodeState& state = nodes[node];
    if (state.activity == Activity::outside || state.call == none) continue;
    const Call& call = job.record(node).calls[state.call];
    const std::size_t group = job.group_of(node, call);
    nodes[node].differs = group != none && call.number != 0 && differing[group] == call.number;
  }
  points_for_.resize(nodes.size());
  waiting_at_.resize(points.size());
  for (std::size_t p = 0; p < points.size(); ++p) {
    finish(points[p]);
    for (const auto* const list : {&points[p].needed(), &std::as_const(points[p]).halted})
      for (const std::size_t node : *list) points_for_[node].push_back(p);
  }
  for (std::size_t node = 0; node < nodes.size(); ++node) judge(node);
}

void WaitGraph::find_state(std::size_t node) {
  NodeState& state = nodes[node];
  const Record& record = job_.record(node);
  const std::vector<Call>& calls = record.calls;
  if (!calls.empty()) state.call = calls.size() - 1;
  if (record.presence == Presence::failed)
    state.activity = Activity::failed;
  else if (record.presence == Presence::closed)
    state.activity = Activity::closed;
  else if (record.presence == Presence::destroyed)
    state.activity = Activity::destroyed;
  if (record.presence != Presence::open) return;
  for (std::size_t i = calls.size(); i-- > 0;) {
    if (calls[i].is_async || !is_open(calls[i])) continue;
    state.activity = Activity::call;
    state.call = i;
    return;
  }
  if (!record.wait) return;
  state.activity = Activity::wait;
  state.call = awaited_call(record);
}

void WaitGraph::find_point(std::size_t node) {
  NodeState& state = nodes[node];
  const Record& record = job_.record(node);
  if (state.activity != Activity::call && state.activity != Activity::wait) return;
  // If all processes have ended, the diagnosis concerns the calls in which they were before.
  if (record.process == Process::ended && !are_all_halted_) return;
  if (state.call == none) {
    if (!record.wait || record.wait->ranks.empty() || record.wait->ranks.size() > most_ranks)
      return;
    Wait wait = *record.wait;
    if (waits_for_any(record)) wait.point = 0;  // one of the ranks may be enough
    state.point = point_of_wait(wait);
    if (waits_for_any(record)) std::erase(points[state.point].possible, node);
    return;
  }
  const Call& call = record.calls[state.call];
  state.point = is_point_to_point(call.descriptor.operation()) ? point_of_message(node, state.call)
                                                               : point_of_collective(node, call);
}

std::size_t WaitGraph::point_of_collective(std::size_t node, const Call& call) {
  const std::size_t group = job_.group_of(node, call);
  const Member* const own = job_.member(group, node);
  if (own == nullptr || call.number == 0) return none;
  const CallDescriptor& descriptor = call.descriptor;
  const bool is_root =
      own->index >= 0 && static_cast<std::uint64_t>(own->index) == descriptor.root();
  Role role = Role::needs_all;
  std::uint64_t root = 0;
  const Awaited awaited = facts_of(descriptor.operation()).awaited;
  if (awaited == Awaited::root) {
    role = is_root ? Role::may_need_all : Role::needs_root;
    root = descriptor.root();
  } else if (awaited == Awaited::earlier) {
    role = Role::needs_earlier;
    root = static_cast<std::uint64_t>(own->index);
  } else if (awaited == Awaited::all_by_root && !is_root) {
    role = Role::may_need_all;
  }
  // Members do not need empty blocks.
  const bool is_empty = descriptor.count == 0 && has_data(descriptor.operation());
  if (is_empty || (role == Role::needs_all && descriptor.has(CallDescriptor::blocks)) ||
      (role != Role::needs_all && own->index < 0))
    role = Role::may_need_all;
  const auto [at, is_new] =
      collectives_.try_emplace({group, call.number, role, root}, points.size());
  if (is_new) points.push_back(collective_point(group, call.number, role, root));
  return at->second;
}

void WaitGraph::add_member(WaitPoint& point, const Member& member, std::uint64_t number,
                           bool is_needed) const {
  const std::optional<std::uint64_t> last = member.last();
  if (!last) {
    point.possible.push_back(member.node);
    point.is_complete = false;
  } else if (*last < number) {
    (is_needed ? point.certain : point.possible).push_back(member.node);
  } else if (const Call* const call = job_.call(member, number)) {
    if (call->state == State::failed)
      point.possible.push_back(member.node);
    else if (is_open(*call) && (is_halted(member.node) || has_left(job_.record(member.node))))
      point.halted.push_back(member.node);
  }
}

// All members have made the call. Members that do not wait for its end may have to call rankmesh
// again before the call makes progress.
void WaitGraph::add_idle_members(WaitPoint& point, std::size_t group, std::uint64_t number) const {
  for (const Member& member : job_.groups()[group].members) {
    const Call* const call = job_.call(member, number);
    if (call == nullptr || !call->is_async || !is_open(*call)) continue;
    if (call->carrier == Carrier::nccl || nodes[member.node].activity != Activity::outside)
      continue;
    point.possible.push_back(member.node);
    point.is_complete = false;
  }
}

WaitPoint WaitGraph::collective_point(std::size_t group, std::uint64_t number, Role role,
                                      std::uint64_t root) const {
  WaitPoint point;
  const JobGroup& members = job_.groups()[group];
  const auto is_needed = [&](const Member& member) {
    if (role == Role::needs_earlier)
      return member.index >= 0 && static_cast<std::uint64_t>(member.index) < root;
    return role != Role::may_need_all;
  };
  for (const Member& member : members.members)
    if (role != Role::needs_root ||
        (member.index >= 0 && static_cast<std::uint64_t>(member.index) == root))
      add_member(point, member, number, is_needed(member));
  if (role == Role::needs_root) {
    if (const auto rank = job_.rank_of_member(group, root); rank && job_.find(*rank) == none)
      point.no_records.push_back(*rank);
  } else {
    point.no_records = members.no_records;
  }
  if (point.is_empty()) add_idle_members(point, group, number);
  return point;
}

std::size_t WaitGraph::point_of_message(std::size_t node, std::size_t call) {
  WaitPoint point;
  for (const MessageEnd& end : Messages::ends_of(job_, node, job_.record(node).calls[call])) {
    const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
    if (other == none) {
      point.no_records.push_back(end.other);
      continue;
    }
    const Messages::Match match = messages_.match_of(job_, end, call);
    if (match == Messages::Match::made) {
      const Call* const theirs = messages_.other_call(job_, end, call);
      if (theirs != nullptr && theirs->state == State::failed)
        point.possible.push_back(other);
      else if (theirs != nullptr && is_open(*theirs) &&
               (is_halted(other) || has_left(job_.record(other))))
        point.halted.push_back(other);
    } else if (match == Messages::Match::not_made && !end.is_send) {
      point.certain.push_back(other);
    } else {
      point.possible.push_back(other);
      if (match == Messages::Match::unknown) point.is_complete = false;
    }
  }
  points.push_back(std::move(point));
  return points.size() - 1;
}

std::size_t WaitGraph::point_of_wait(const Wait& wait) {
  const bool is_meeting = wait.point != 0;
  if (is_meeting) {
    const auto [at, is_new] =
        meetings_.try_emplace({wait.point, wait.ranks.to_string()}, points.size());
    if (!is_new) return at->second;
  }
  WaitPoint point{.is_meeting = is_meeting};
  wait.ranks.for_each([&](Rank rank) {
    const std::size_t node = job_.find(rank);
    if (node == none) {
      point.no_records.push_back(rank);
      return;
    }
    const Record& record = job_.record(node);
    if (!is_meeting)
      point.possible.push_back(node);
    else if (record.presence == Presence::open && record.wait && record.wait->point == wait.point) {
      if (is_halted(node)) point.halted.push_back(node);
    } else if (record.presence != Presence::closed) {
      point.certain.push_back(node);
    }
  });
  points.push_back(std::move(point));
  return points.size() - 1;
}

Time WaitGraph::valid_until(const Record& record) const {
  if (is_gone(record)) return std::numeric_limits<Time>::max();
  // A file whose process is elsewhere was read with the other records, but its last time may be
  // old: a process that is stopped does not write any more.
  return record.is_observed ? record.read_at : last_read_;
}

void WaitGraph::finish(WaitPoint& point) const {
  const auto sort_once = [](auto& list) {
    std::ranges::sort(list);
    const auto repeated = std::ranges::unique(list);
    list.erase(repeated.begin(), repeated.end());
  };
  for (auto* const list : {&point.certain, &point.possible, &point.halted}) sort_once(*list);
  sort_once(point.no_records);  // both ends of a send_recv may be one rank
  for (const auto* const list : {&point.needed(), &std::as_const(point).halted}) {
    for (const std::size_t node : *list) {
      point.valid_until = std::max(point.valid_until, valid_until(job_.record(node)));
    }
  }
}

void WaitGraph::judge(std::size_t node) {
  NodeState& state = nodes[node];
  if (state.point == none) return;
  const WaitPoint& point = points[state.point];
  // If a call differs from the calls of other members, no other reason is needed.
  if (point.is_empty() || (state.differs && point.certain.empty() && point.halted.empty())) {
    state.point = none;
    return;
  }
  const Record& record = job_.record(node);
  std::optional<Time>& since = state.since;
  if (state.call != none) since = record.calls[state.call].begin;
  if (record.wait && state.activity == Activity::wait) since = record.wait->since;
  const bool is_long = since && record.read_at - *since >= long_wait;
  // A rank that has reached a meeting may have continued before the other ranks notice that it was
  // there.
  state.is_certain =
      (!point.certain.empty() && (is_long || !point.is_meeting)) ||
      (is_long && point.is_complete && point.possible.size() == 1 && point.no_records.empty());
  const bool has_nodes = !point.needed().empty() || !point.halted.empty();
  state.is_old = since && has_nodes && *since > point.valid_until;
  if (!state.is_old) waiting_at_[state.point].push_back(node);
}

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>

#include "detail/job.hpp"

namespace rankmesh::record::detail {
namespace {

bool has_all_calls(const Record& record) {
  return record.calls_made <= record.calls.size() + record.marks.size();
}

}  // namespace

Job::Job(std::span<const Record> records) : records_{records}, nodes_(records.size()) {
  std::iota(nodes_.begin(), nodes_.end(), std::size_t{0});
  std::erase_if(nodes_, [&](std::size_t i) { return records_[i].rank < Rank{0}; });
  const auto rank_of = [&](std::size_t i) { return records_[i].rank; };
  std::ranges::stable_sort(nodes_, {}, rank_of);
  const auto repeated = std::ranges::unique(nodes_, {}, rank_of);
  nodes_.erase(repeated.begin(), repeated.end());
  slots_.resize(size());
  std::unordered_map<std::uint64_t, std::size_t> by_identity;
  for (std::size_t node = 0; node < size(); ++node) {
    is_complete_.push_back(has_all_calls(record(node)));
    add_groups(node, by_identity);
    add_calls(node);
  }
  find_missing();
}

void Job::add_groups(std::size_t node,
                     std::unordered_map<std::uint64_t, std::size_t>& by_identity) {
  const std::vector<Group>& own = record(node).groups;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto [at, is_new] = by_identity.try_emplace(own[i].identity, groups_.size());
    if (is_new) groups_.emplace_back();
    JobGroup& group = groups_[at->second];
    group.size = std::max(group.size, own[i].size);
    if (group.ranks.empty()) group.ranks = own[i].ranks;
    const bool is_repeated = !group.members.empty() && group.members.back().node == node;
    slots_[node].push_back(is_repeated ? none : at->second);
    if (is_repeated) continue;
    Member& member = group.members.emplace_back();
    member.node = node;
    member.group = i;
    member.is_complete = is_complete_[node];
  }
}

void Job::add_calls(std::size_t node) {
  std::vector<Member*> members;
  for (const std::size_t group : slots_[node])
    members.push_back(group == none ? nullptr : &groups_[group].members.back());
  const std::vector<Call>& calls = record(node).calls;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Call& call = calls[i];
    if (call.number == 0 || call.group >= members.size() || members[call.group] == nullptr)
      continue;
    Member& member = *members[call.group];
    if (!member.calls.empty() && call.number < member.first + member.calls.size()) continue;
    // A truncated record may lack a call. The calls before the missing one are not compared.
    if (call.number != member.first + member.calls.size()) member.calls.clear();
    if (member.calls.empty()) member.first = call.number;
    member.calls.push_back(static_cast<std::uint32_t>(i));
  }
}

void Job::find_missing() {
  std::vector<Rank> missing;
  const std::int64_t world = size() == 0 ? 0 : std::min(record(0).world_size, most_ranks);
  for (std::int64_t rank = 0, node = 0; rank < world; ++rank) {
    while (static_cast<std::size_t>(node) < size() &&
           this->rank(static_cast<std::size_t>(node)).value() < rank)
      ++node;
    if (static_cast<std::size_t>(node) >= size() ||
        this->rank(static_cast<std::size_t>(node)).value() != rank)
      missing.emplace_back(rank);
  }
  missing_ = RankSet::of(missing);
  // Records of unknown origin may claim large groups. If the lists would become too long, the
  // members of a group count as unknown.
  std::int64_t left = 4 * most_ranks;
  for (JobGroup& group : groups_) {
    if (group.ranks.size() > left) group.ranks = {};
    left -= group.ranks.size();
    for (Member& member : group.members) member.index = group.ranks.find(rank(member.node));
    if (group.ranks.size() > world || std::ssize(group.members) >= group.ranks.size()) continue;
    group.ranks.for_each([&](Rank rank) {
      if (find(rank) == none) group.no_records.push_back(rank);
    });
  }
}

std::size_t Job::find(Rank rank) const {
  const auto at =
      std::ranges::lower_bound(nodes_, rank, {}, [&](std::size_t i) { return records_[i].rank; });
  if (at == nodes_.end() || records_[*at].rank != rank) return none;
  return static_cast<std::size_t>(at - nodes_.begin());
}

const Member* Job::member(std::size_t group, std::size_t node) const {
  if (group == none) return nullptr;
  const auto at = std::ranges::lower_bound(groups_[group].members, node, {}, &Member::node);
  return at == groups_[group].members.end() || at->node != node ? nullptr : &*at;
}

std::optional<Rank> Job::rank_of_member(std::size_t group, std::uint64_t index) const {
  if (group == none || index >= static_cast<std::uint64_t>(groups_[group].ranks.size()))
    return std::nullopt;
  return groups_[group].ranks[static_cast<std::int64_t>(index)];
}

const Call* Job::call(const Member& member, std::uint64_t number) const {
  if (number < member.first || number - member.first >= member.calls.size()) return nullptr;
  return &record(member.node).calls[member.calls[number - member.first]];
}

}  // namespace rankmesh::record::detail

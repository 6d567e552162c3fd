// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"
#include "record/matching.hpp"

namespace rankmesh::record::detail {
namespace {

// The number of the first collective that two members have made differently, or 0.
std::uint64_t first_difference(const Job& job, const JobGroup& group) {
  std::vector<const Member*> members;
  for (const Member& member : group.members)
    if (!member.calls.empty()) members.push_back(&member);
  std::ranges::stable_sort(members, {}, &Member::first);
  // Calls with consecutive numbers, of the members that were visited. No later member has a call
  // with a number below the `base` of the last gap.
  std::vector<const Call*> known;
  std::uint64_t base = 0;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  for (const Member* const member : members) {
    if (member->first > base + known.size()) known.clear();
    if (known.empty()) base = member->first;
    const std::vector<Call>& calls = job.record(member->node).calls;
    for (std::size_t i = 0; i < member->calls.size() && member->first + i < limit; ++i) {
      const Call* const call = &calls[member->calls[i]];
      const std::size_t at = member->first + i - base;
      if (at == known.size())
        known.push_back(call);
      else if (!known[at]->descriptor.matches(call->descriptor))
        limit = member->first + i;
    }
  }
  return limit == std::numeric_limits<std::uint64_t>::max() ? 0 : limit;
}

std::vector<Camp> camps_of(const Job& job, const JobGroup& group, std::uint64_t number) {
  std::vector<Camp> camps;
  for (const Member& member : group.members) {
    const Call* const call = job.call(member, number);
    if (call == nullptr) continue;
    const auto camp = std::ranges::find_if(
        camps, [&](const Camp& c) { return c.call->descriptor.matches(call->descriptor); });
    if (camp == camps.end())
      camps.push_back({call, {member.node}});
    else
      camp->nodes.push_back(member.node);
  }
  std::ranges::stable_sort(camps, std::ranges::greater{},
                           [](const Camp& camp) { return camp.nodes.size(); });
  return camps;
}

std::string call_without_number(const Record& record, const Call& call) {
  return rankmesh::to_string(call.descriptor, family_of(record, call));
}

// Says that a camp is one call ahead of or behind the largest camp, if the next calls show it.
std::string shift_text(const Job& job, const Difference& difference, const Camp& camp) {
  const Camp& most = difference.camps.front();
  const auto next = [&](const Camp& of) -> const Call* {
    const Member* const member = job.member(difference.group, of.nodes.front());
    return member == nullptr ? nullptr : job.call(*member, difference.number + 1);
  };
  const Call* const next_of_most = next(most);
  const Call* const next_of_camp = next(camp);
  if (next_of_most != nullptr && next_of_most->descriptor.matches(camp.call->descriptor))
    return fmt::format(" (the others made this call as call {}: a call may be missing here)",
                       difference.number + 1);
  if (next_of_camp != nullptr && next_of_camp->descriptor.matches(most.call->descriptor))
    return fmt::format(" (followed by the call of the others: this call may be one too many)");
  return "";
}

// Equal differences of several groups.
struct Merged {
  std::vector<std::vector<std::size_t>> nodes;  // of each camp
  const Difference* first = nullptr;
  std::size_t groups = 0;
};

Finding finding_of(const Job& job, Merged& merged) {
  Finding finding{.kind = Finding::Kind::different_calls, .severity = Finding::Severity::error};
  const Difference& first = *merged.first;
  const Camp& most = first.camps.front();
  const std::string name = family_of(job.record(most.nodes.front()), *most.call);
  std::vector<std::string> parts;
  std::vector<std::size_t> all;
  for (std::size_t c = 0; c < first.camps.size(); ++c) {
    std::vector<std::size_t>& nodes = merged.nodes[c];
    std::ranges::sort(nodes);
    const Camp& camp = first.camps[c];
    const Record& record = job.record(camp.nodes.front());
    all.insert(all.end(), nodes.begin(), nodes.end());
    finding.steps.push_back({ranks_of(job, nodes), to_string(record, *camp.call), {}});
    if (c < 4)
      parts.push_back(fmt::format("{} called {}{}", name_ranks(job, nodes),
                                  call_without_number(record, *camp.call),
                                  c == 0 ? "" : shift_text(job, first, camp)));
  }
  if (first.camps.size() > parts.size())
    parts.push_back(
        fmt::format("there are {} more different calls", first.camps.size() - parts.size()));
  std::ranges::sort(all);
  finding.ranks = ranks_of(job, all);
  finding.text =
      fmt::format("The members of {} differ in call {}: {}.",
                  merged.groups == 1 ? fmt::format("a group of {}", name)
                                     : fmt::format("{} groups of {}", merged.groups, name),
                  first.number, fmt::join(parts, "; "));
  return finding;
}

}  // namespace

std::vector<Difference> differences_of(const Job& job) {
  std::vector<Difference> differences;
  for (std::size_t g = 0; g < job.groups().size(); ++g) {
    const std::uint64_t number = first_difference(job, job.groups()[g]);
    if (number != 0) differences.push_back({g, number, camps_of(job, job.groups()[g], number)});
  }
  return differences;
}

std::vector<Finding> different_calls(const Job& job, const std::vector<Difference>& differences) {
  std::vector<std::string> order;
  std::map<std::string, Merged> by_text;
  for (const Difference& difference : differences) {
    std::string key = fmt::format("{}", difference.number);
    for (const Camp& camp : difference.camps)
      key += "|" + to_string(job.record(camp.nodes.front()), *camp.call);
    const auto [at, is_new] = by_text.try_emplace(key);
    Merged& merged = at->second;
    if (is_new) {
      order.push_back(key);
      merged.first = &difference;
      merged.nodes.resize(difference.camps.size());
    }
    ++merged.groups;
    for (std::size_t c = 0; c < difference.camps.size(); ++c)
      merged.nodes[c].insert(merged.nodes[c].end(), difference.camps[c].nodes.begin(),
                             difference.camps[c].nodes.end());
  }
  std::vector<Finding> findings;
  for (const std::string& key : order) findings.push_back(finding_of(job, by_text.at(key)));
  return findings;
}

std::vector<Finding> unequal_ends(const Job& job) {
  std::vector<Finding> findings;
  for (const JobGroup& group : job.groups()) {
    std::map<std::uint64_t, std::vector<std::size_t>, std::greater<>> by_count;
    for (const Member& member : group.members) {
      if (job.record(member.node).presence != Presence::closed || !member.last()) continue;
      by_count[*member.last()].push_back(member.node);
    }
    if (by_count.size() < 2) continue;
    const Member& any = group.members.front();
    const std::vector<std::string>& names = job.record(any.node).groups[any.group].names;
    Finding finding{.kind = Finding::Kind::missing_call, .severity = Finding::Severity::warning};
    std::vector<std::string> parts;
    for (const auto& [count, nodes] : by_count) {
      finding.steps.push_back({ranks_of(job, nodes), count_text(count, "call"), {}});
      if (parts.size() < 4)
        parts.push_back(
            fmt::format("{} made {}", name_ranks(job, nodes), count_text(count, "call")));
    }
    finding.ranks = finding.steps.back().ranks;
    finding.text = fmt::format(
        "All of these ranks have closed the mesh after different numbers of collectives in the "
        "same group of {}: {}.",
        names.empty() ? "(unknown group)" : names.front(), fmt::join(parts, "; "));
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"
#include "record/matching.hpp"

namespace rankmesh::record::detail {
namespace {

constexpr std::size_t most_steps = 16;  // of a chain
constexpr std::size_t most_camps = 4;   // that are described
// Few programs let the other ranks wait for so long.
constexpr Time suspicious_wait = 10'000'000'000;

// Ranks that wait for no other rank, and that do the same or for which the same ranks wait.
struct Roots {
  std::vector<std::size_t> nodes;
  std::vector<std::vector<std::size_t>> camps;           // those that do the same
  Finding::Severity severity = Finding::Severity::note;  // the worst one
  WaitGraph::Waiters waiters;
};

// Says why a rank is in a call although it waits for no other rank. Empty if nothing is to be said.
std::string_view reason_text(const Evidence& evidence, std::size_t node) {
  const Call* const call = blocked_call(evidence, node);
  if (evidence.graph.nodes[node].differs) return "; this call differs from those of other members";
  if (call == nullptr || evidence.graph.is_halted(node)) return "";
  if (evidence.graph.nodes[node].is_old)
    return "; this call began after the records of its other members had been read";
  return is_point_to_point(call->descriptor.operation())
             ? "; the other end of this message has been called too"
             : "; no rank is missing in this call";
}

// Returns what a rank does that waits for no other rank.
std::string root_text(const Evidence& evidence, std::size_t node) {
  return doing(evidence.job.record(node), blocked_call(evidence, node)) +
         std::string{reason_text(evidence, node)};
}

// Whether the rank is outside rankmesh: it computes, or is in a call of the program's own MPI.
bool is_outside(const Evidence& evidence, std::size_t node) {
  return evidence.graph.nodes[node].activity == Activity::outside &&
         evidence.job.record(node).presence == Presence::open && !evidence.graph.is_halted(node);
}

// `; rank 2 (dp=1,tp=0) runs outside rankmesh since ...`, for ranks that do the same.
std::string camp_text(const Evidence& evidence, const std::vector<std::size_t>& camp) {
  const Job& job = evidence.job;
  const std::size_t first = camp.front();
  const bool is_mixed = std::ranges::any_of(camp, [&](std::size_t node) {
    return job.record(node).process != job.record(first).process;
  });
  return fmt::format(
      "; {} {}{}{}{}", name_ranks(job, camp),
      doing(job.record(first), blocked_call(evidence, first), camp.size() > 1,
            is_mixed ? std::optional{Process::unknown} : std::nullopt),
      since_text(job, camp, evidence.graph.nodes[first].activity != Activity::outside),
      mark_text(job, camp), reason_text(evidence, first));
}

// The nodes for which other nodes wait, and which themselves wait for no other node.
std::vector<std::size_t> all_roots(const Evidence& evidence, const std::vector<Circle>& in_circle) {
  const WaitGraph& graph = evidence.graph;
  std::vector<bool> is_needed(graph.nodes.size());
  std::vector<bool> is_known(graph.points.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const NodeState& state = graph.nodes[node];
    if (state.point == none || state.is_old || is_known[state.point]) continue;
    is_known[state.point] = true;
    for (const auto* const list :
         {&graph.points[state.point].needed(), &graph.points[state.point].halted})
      for (const std::size_t needed : *list) is_needed[needed] = true;
  }
  std::vector<std::size_t> roots;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (!is_needed[node] || in_circle[node] != Circle::no) continue;
    const NodeState& state = graph.nodes[node];
    const bool waits_for_nobody =
        state.point == none || state.is_old ||
        (graph.points[state.point].no_records.empty() && graph.needed_by(node).empty());
    if (waits_for_nobody || graph.is_halted(node)) roots.push_back(node);
  }
  return roots;
}

// Returns the longest time for which a rank waits for each node, without other ranks between them.
std::vector<Time> times_waited_for(const Evidence& evidence) {
  const WaitGraph& graph = evidence.graph;
  std::vector<Time> at_point(graph.points.size());
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    const NodeState& state = graph.nodes[node];
    if (state.point == none || state.is_old || !state.since) continue;
    Time& longest = at_point[state.point];
    longest = std::max(longest, evidence.job.record(node).read_at - *state.since);
  }
  std::vector<Time> result(graph.nodes.size());
  for (std::size_t p = 0; p < graph.points.size(); ++p)
    for (const auto* const list : {&graph.points[p].needed(), &graph.points[p].halted})
      for (const std::size_t node : *list) result[node] = std::max(result[node], at_point[p]);
  return result;
}

Finding::Severity severity_of(const Evidence& evidence, std::size_t root, Time waited_for) {
  using enum Severity;
  const Record& record = evidence.job.record(root);
  if (record.presence != Presence::open) return error;
  if (evidence.graph.is_halted(root)) return record.process == Process::ended ? error : warning;
  if (evidence.graph.nodes[root].differs) return error;
  return waited_for >= suspicious_wait ? warning : note;
}

bool needs_all(const Evidence& evidence, std::size_t node) {
  const NodeState& state = evidence.graph.nodes[node];
  return state.is_certain || !evidence.graph.points[state.point].halted.empty();
}

// `ranks 0 and 1 wait for rank 2 in tp.barrier(), call 4`, for each call in which ranks wait for
// the roots without other ranks between them. Sets `direct` to their number.
std::string direct_text(const Evidence& evidence, const Roots& roots, std::size_t& direct) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::size_t>> by_call;
  for (direct = 0; direct < roots.waiters.nodes.size(); ++direct) {
    if (!std::ranges::binary_search(roots.nodes, roots.waiters.next[direct])) break;
    const std::string text = wait_text(evidence, roots.waiters.nodes[direct]);
    const auto [at, is_new] = by_call.try_emplace(text);
    if (is_new) order.push_back(text);
    at->second.push_back(roots.waiters.nodes[direct]);
  }
  std::vector<std::string> parts;
  for (const std::string& text : order) {
    std::vector<std::size_t>& nodes = by_call.at(text);
    std::ranges::sort(nodes);
    parts.push_back(fmt::format("{} {} for {} in {}", name_ranks(evidence.job, nodes),
                                !needs_all(evidence, nodes.front()) ? "may wait"
                                : nodes.size() == 1                 ? "waits"
                                                                    : "wait",
                                name_ranks(evidence.job, roots.nodes), text));
    if (parts.size() == 3 && order.size() > 3) {
      parts.push_back(fmt::format("other ranks wait for them in {} other calls", order.size() - 3));
      break;
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// The chain from the rank that is farthest away from the roots.
std::vector<Step> longest_chain(const Evidence& evidence, const Roots& roots) {
  const Job& job = evidence.job;
  std::map<std::size_t, std::size_t> next;
  for (std::size_t i = 0; i < roots.waiters.nodes.size(); ++i)
    next[roots.waiters.nodes[i]] = roots.waiters.next[i];
  std::vector<Step> steps;
  std::size_t node = roots.waiters.nodes.back();
  for (; next.contains(node); node = next.at(node)) {
    if (steps.size() < most_steps)
      steps.push_back({ranks_of(job, {&node, 1}), wait_text(evidence, node),
                       ranks_of(job, {&next.at(node), 1})});
  }
  steps.push_back({ranks_of(job, {&node, 1}), root_text(evidence, node), {}});
  return steps;
}

Finding chain_finding(const Evidence& evidence, Roots& roots) {
  const Job& job = evidence.job;
  const Record& record = job.record(roots.nodes.front());
  const bool is_closed = record.presence == Presence::closed;
  Finding finding{.kind = is_closed ? Finding::Kind::missing_call : Finding::Kind::waits,
                  .severity = roots.severity};
  std::size_t direct = 0;
  finding.text = capital(direct_text(evidence, roots, direct));
  for (std::size_t c = 0; c < std::min(roots.camps.size(), most_camps); ++c)
    finding.text += camp_text(evidence, roots.camps[c]);
  if (roots.camps.size() > most_camps)
    finding.text += "; the others are outside rankmesh, too, after other calls";
  finding.text += ".";
  if (is_closed) finding.text += counts_text(evidence, {&roots.waiters.nodes.front(), 1});
  finding.text += indirect_text(evidence, roots.waiters, direct);
  finding.steps = longest_chain(evidence, roots);
  std::vector<std::size_t> waiting = roots.waiters.nodes;
  std::ranges::sort(waiting);
  finding.ranks = ranks_of(job, roots.nodes);
  finding.waiting = ranks_of(job, waiting);
  return finding;
}

// Ranks that do the same belong together. So do ranks outside rankmesh for which the same ranks
// wait: they may be in one call of MPI, such as the program's own MPI_Barrier.
std::vector<Roots> groups_of_roots(const Evidence& evidence,
                                   const std::vector<std::size_t>& nodes) {
  std::map<std::string, std::vector<std::size_t>> by_text;
  for (const std::size_t node : nodes)
    by_text[is_outside(evidence, node)
                ? doing(evidence.job.record(node), nullptr, false, Process::unknown)
                : root_text(evidence, node)]
        .push_back(node);
  const std::vector<Time> waited_for = times_waited_for(evidence);
  std::map<std::set<std::size_t>, Roots> groups;
  for (const auto& [text, camp] : by_text) {
    std::set<std::size_t> key;  // the points that need them
    for (const std::size_t node : camp)
      for (const std::size_t point : evidence.graph.points_for(node)) key.insert(point);
    if (!is_outside(evidence, camp.front())) key = {none, camp.front()};
    Roots& roots = groups[key];
    roots.camps.push_back(camp);
    roots.nodes.insert(roots.nodes.end(), camp.begin(), camp.end());
    for (const std::size_t node : camp)
      roots.severity = std::min(roots.severity, severity_of(evidence, node, waited_for[node]));
  }
  std::vector<Roots> result;
  for (auto& [key, roots] : groups) {
    std::ranges::sort(roots.nodes);
    std::ranges::sort(roots.camps);
    result.push_back(std::move(roots));
  }
  return result;
}

}  // namespace

std::string indirect_text(const Evidence& evidence, const WaitGraph::Waiters& waiters,
                          std::size_t direct) {
  std::vector<std::size_t> nodes{waiters.nodes.begin() + static_cast<std::ptrdiff_t>(direct),
                                 waiters.nodes.end()};
  if (nodes.empty()) return "";
  const std::size_t first = nodes.front();
  const std::size_t next = waiters.next[direct];
  const std::string example =
      fmt::format("{} {} for {} in {}", name_ranks(evidence.job, {&first, 1}),
                  needs_all(evidence, first) ? "waits" : "may wait",
                  name_ranks(evidence.job, {&next, 1}), wait_text(evidence, first));
  if (nodes.size() == 1) return fmt::format(" In turn, {}.", example);
  std::ranges::sort(nodes);
  return fmt::format(" In turn, {} wait for those that wait, for example {}.",
                     name_ranks(evidence.job, nodes), example);
}

std::vector<Finding> chains_of_waits(const Evidence& evidence,
                                     const std::vector<Circle>& in_circle) {
  std::vector<Roots> all = groups_of_roots(evidence, all_roots(evidence, in_circle));
  std::vector<Roots*> order;
  for (Roots& roots : all) order.push_back(&roots);
  std::ranges::sort(order, [&](const Roots* a, const Roots* b) {
    return std::pair{a->severity, a->nodes.front()} < std::pair{b->severity, b->nodes.front()};
  });
  std::vector<Finding> findings;
  for (Roots* const roots : order) {
    // The rest is only counted.
    if (findings.size() >= most_findings) {
      findings.emplace_back();
      continue;
    }
    roots->waiters = evidence.graph.waiters_of(roots->nodes);
    // If roots wait for each other because all of them are halted, they need no other rank.
    if (!roots->waiters.nodes.empty()) findings.push_back(chain_finding(evidence, *roots));
  }
  return findings;
}

}  // namespace rankmesh::record::detail

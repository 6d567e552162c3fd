// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"

namespace rankmesh::record::detail {
namespace {

// A long circle is printed in part.
constexpr std::size_t most_printed = 6;

// A shortest circle among some of the ranks that wait for each other.
std::vector<std::size_t> short_circle(const WaitGraph& graph, const std::vector<std::size_t>& nodes,
                                      bool only_certain) {
  std::vector<std::size_t> best;
  for (std::size_t i = 0; i < std::min<std::size_t>(nodes.size(), 16); ++i) {
    std::vector<std::size_t> circle = graph.circle_through(nodes[i], only_certain);
    if (!circle.empty() && (best.empty() || circle.size() < best.size())) best = std::move(circle);
  }
  return best;
}

// The last call of a rank in some groups before its present call; null if the record has none.
const Call* call_before(const Evidence& evidence, std::size_t node,
                        const std::set<std::size_t>& groups) {
  const Record& record = evidence.job.record(node);
  for (std::size_t i = evidence.graph.nodes[node].call; i-- > 0;)
    if (record.calls[i].number != 0 &&
        groups.contains(evidence.job.group_of(node, record.calls[i])))
      return &record.calls[i];
  return nullptr;
}

// `ranks 0 and 3 called tp.barrier, call 3, but rank 1 called dp.barrier, call 3`
std::string branches_text(const Evidence& evidence,
                          const std::map<std::string, std::vector<std::size_t>>& by_call) {
  std::vector<std::string> parts;
  for (const auto& [call, nodes] : by_call)
    parts.push_back(fmt::format("{} called {}", number_ranks(evidence.job, nodes), call));
  return fmt::format("{}", fmt::join(parts, ", but "));
}

// Says after which call the ranks of a circle have made different calls. Empty if the circle has
// only one group.
std::string orders_text(const Evidence& evidence, const std::vector<std::size_t>& circle) {
  std::set<std::size_t> groups;
  for (const std::size_t node : circle) {
    const Call* const call = blocked_call(evidence, node);
    if (call == nullptr) return "";
    if (call->number != 0) groups.insert(evidence.job.group_of(node, *call));
  }
  if (groups.size() < 2) return "";
  std::string text =
      " The ranks call these groups in different orders, or a call is missing on one of them.";
  // The ranks by their previous call, and then by their present call.
  std::map<std::string, std::map<std::string, std::vector<std::size_t>>> branches;
  for (const std::size_t node : circle) {
    const Record& record = evidence.job.record(node);
    if (const Call* const before = call_before(evidence, node, groups))
      branches[short_call_text(record, *before)]
              [short_call_text(record, *blocked_call(evidence, node))]
                  .push_back(node);
  }
  std::size_t printed = 0;
  for (const auto& [before, by_call] : branches)
    if (++printed <= 4)
      text += fmt::format(" After {}, {}.", before, branches_text(evidence, by_call));
  return text;
}

bool has_message(const Evidence& evidence, const std::vector<std::size_t>& circle) {
  return std::ranges::any_of(circle, [&](std::size_t node) {
    const Call* const call = blocked_call(evidence, node);
    return call != nullptr && is_point_to_point(call->descriptor.operation()) &&
           call->descriptor.operation() != Operation::recv;
  });
}

Finding circle_finding(const Evidence& evidence, const std::vector<std::size_t>& circle,
                       bool is_certain) {
  using enum Severity;
  Finding finding{.kind = Finding::Kind::circle, .severity = is_certain ? error : warning};
  const Job& job = evidence.job;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const std::size_t next = circle[(i + 1) % circle.size()];
    const std::string text = wait_text(evidence, circle[i]);
    finding.steps.push_back({ranks_of(job, {&circle[i], 1}), text, ranks_of(job, {&next, 1})});
    const Call* const call = blocked_call(evidence, circle[i]);
    if (i < most_printed)
      parts.push_back(
          fmt::format("{} {} for {} in {}", name_ranks(job, {&circle[i], 1}),
                      evidence.graph.nodes[circle[i]].is_certain ? "waits" : "may wait",
                      number_ranks(job, {&next, 1}),
                      call == nullptr ? text : short_call_text(job.record(circle[i]), *call)));
  }
  if (circle.size() > most_printed)
    parts.push_back(
        fmt::format("and so on through {}", count_text(circle.size() - most_printed, "more rank")));
  finding.text =
      fmt::format("{}: {}.",
                  is_certain ? "These ranks wait for each other, so none of them can go on"
                             : "These ranks probably wait for each other",
                  fmt::join(parts, "; "));
  const std::string orders = orders_text(evidence, circle);
  finding.text += orders.empty() ? counts_text(evidence, circle) : orders;
  if (!is_certain && has_message(evidence, circle))
    finding.text +=
        " A send can end before its receive is called only while its message fits into a buffer.";
  return finding;
}

// Circles of the same calls in other groups are added to the finding of the first one.
struct MergedCircles {
  Finding finding;
  std::vector<std::size_t> nodes;
  std::size_t count = 0;
};

void add_others(const Evidence& evidence, MergedCircles& merged, std::size_t in_first) {
  std::ranges::sort(merged.nodes);
  Finding& finding = merged.finding;
  finding.ranks = ranks_of(evidence.job, merged.nodes);
  if (merged.count > 1)
    finding.text +=
        fmt::format(" There {} like this one, all together {}.",
                    merged.count == 2 ? std::string{"is 1 more circle"}
                                      : fmt::format("are {} more circles", merged.count - 1),
                    name_ranks(evidence.job, merged.nodes));
  else if (merged.nodes.size() > in_first)
    finding.text += fmt::format(" In the same way, {} wait for each other.",
                                name_ranks(evidence.job, merged.nodes));
  std::vector<std::size_t> waiting = evidence.graph.waiters_of(merged.nodes).nodes;
  if (waiting.empty()) return;
  std::ranges::sort(waiting);
  finding.waiting = ranks_of(evidence.job, waiting);
  finding.text +=
      fmt::format(" {} {} for them, directly or through other ranks: {}.",
                  count_text(waiting.size(), "more rank"), waiting.size() == 1 ? "waits" : "wait",
                  name_ranks(evidence.job, waiting));
}

std::string key_of(const Finding& finding) {
  std::string key = finding.severity == Finding::Severity::error ? "!" : "?";
  std::vector<std::string> texts;
  for (const Step& step : finding.steps) texts.push_back(step.text);
  const auto first = std::ranges::min_element(texts);
  std::rotate(texts.begin(), first, texts.end());
  return key + fmt::format("{}", fmt::join(texts, "|"));
}

}  // namespace

namespace {

// A wait whose reason is not certain may end at any moment. Such waits count only if all of them
// have lasted long.
bool have_all_lasted(const Evidence& evidence, const std::vector<std::size_t>& nodes) {
  return std::ranges::all_of(nodes, [&](std::size_t node) {
    const NodeState& state = evidence.graph.nodes[node];
    return !state.since || evidence.job.record(node).read_at - *state.since >= long_wait;
  });
}

}  // namespace

std::vector<Finding> circles_of_waits(const Evidence& evidence, std::vector<Circle>& in_circle) {
  std::vector<std::string> order;
  std::map<std::string, MergedCircles> by_text;
  std::map<std::string, std::size_t> length;
  for (const bool is_certain : {true, false}) {
    for (const std::vector<std::size_t>& nodes : evidence.graph.circles(is_certain)) {
      if (std::ranges::any_of(nodes,
                              [&](std::size_t node) { return in_circle[node] != Circle::no; }))
        continue;
      if (!is_certain && !have_all_lasted(evidence, nodes)) continue;
      const std::vector<std::size_t> circle = short_circle(evidence.graph, nodes, is_certain);
      for (const std::size_t node : nodes)
        in_circle[node] = is_certain ? Circle::certain : Circle::possible;
      Finding finding = circle_finding(evidence, circle, is_certain);
      const std::string key = key_of(finding);
      const auto [at, is_new] = by_text.try_emplace(key);
      MergedCircles& merged = at->second;
      if (is_new) {
        order.push_back(key);
        merged.finding = std::move(finding);
        length[key] = circle.size();
      }
      ++merged.count;
      std::ranges::copy(nodes, std::back_inserter(merged.nodes));
    }
  }
  std::vector<Finding> findings;
  for (const std::string& key : order) {
    if (findings.size() < most_findings) add_others(evidence, by_text.at(key), length.at(key));
    findings.push_back(std::move(by_text.at(key).finding));
  }
  return findings;
}

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "record/diagnosis.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"
#include "record/matching.hpp"

namespace rankmesh::record {
namespace detail {

const Call* blocked_call(const Evidence& evidence, std::size_t node) {
  const NodeState& state = evidence.graph.nodes[node];
  const bool is_blocked = state.activity == Activity::call || state.activity == Activity::wait;
  return is_blocked && state.call != none ? &evidence.job.record(node).calls[state.call] : nullptr;
}

std::string wait_text(const Evidence& evidence, std::size_t node) {
  const Record& record = evidence.job.record(node);
  if (const Call* const call = blocked_call(evidence, node)) return to_string(record, *call);
  if (evidence.graph.nodes[node].activity == Activity::wait) return record.wait->text;
  return doing(record, nullptr);
}

std::string counts_text(const Evidence& evidence, std::span<const std::size_t> nodes) {
  const Job& job = evidence.job;
  constexpr std::size_t most_counts = 4;
  std::string text;
  std::set<std::size_t> known;
  for (const std::size_t node : nodes) {
    const Call* const call = blocked_call(evidence, node);
    const std::size_t group = call == nullptr ? none : job.group_of(node, *call);
    if (group == none || call->number == 0 || !known.insert(group).second) continue;
    std::map<std::uint64_t, std::vector<std::size_t>, std::greater<>> by_count;
    for (const Member& member : job.groups()[group].members)
      if (const auto last = member.last()) by_count[*last].push_back(member.node);
    if (by_count.size() < 2) continue;
    std::vector<std::string> parts;
    for (const auto& [count, members] : by_count) {
      if (parts.size() == most_counts) break;
      parts.push_back(fmt::format("{} {} made {}", number_ranks(job, members),
                                  members.size() == 1 ? "has" : "have",
                                  parts.empty() ? fmt::format("{} of {}", count_text(count, "call"),
                                                              family_of(job.record(node), *call))
                                                : std::to_string(count)));
    }
    text += fmt::format(" {}.", capital(fmt::format("{}", fmt::join(parts, ", and "))));
  }
  return text;
}

void shorten(std::vector<Finding>& findings) {
  if (findings.size() <= most_findings) return;
  const std::size_t more = findings.size() - most_findings;
  findings.resize(most_findings);
  findings.back().text +=
      fmt::format(" There {} of this kind.", more == 1 ? std::string{"is 1 more finding"}
                                                       : fmt::format("are {} more findings", more));
}

std::vector<Finding> missing_records(const Evidence& evidence) {
  const Job& job = evidence.job;
  if (job.missing().empty()) return {};
  Finding finding{.kind = Finding::Kind::no_record, .severity = Finding::Severity::note};
  finding.ranks = job.missing();
  finding.text =
      fmt::format("There is no record of {} {} here: {}.",
                  job.missing().size() == 1 ? "rank" : "ranks", job.missing().to_string(60),
                  job.missing().size() == 1
                      ? "it runs on another node, or its process or its mesh has ended"
                      : "they run on other nodes, or their processes or their meshes have ended");
  std::map<std::string, std::vector<std::size_t>> by_call;
  std::vector<std::size_t> waiting;
  for (std::size_t node = 0; node < job.size(); ++node) {
    const NodeState& state = evidence.graph.nodes[node];
    if (state.point == none) continue;
    const WaitPoint& point = evidence.graph.points[state.point];
    if (point.no_records.empty() || !point.needed().empty() || !point.halted.empty()) continue;
    by_call[wait_text(evidence, node)].push_back(node);
    waiting.push_back(node);
  }
  const WaitGraph::Waiters others = evidence.graph.waiters_of(waiting);
  std::size_t printed = 0;
  for (const auto& [text, nodes] : by_call) {
    if (++printed > 4) break;
    const auto& no_records =
        evidence.graph.points[evidence.graph.nodes[nodes.front()].point].no_records;
    finding.text +=
        fmt::format(" {} {} in {} and may wait for {}.", capital(name_ranks(job, nodes)),
                    nodes.size() == 1 ? "is" : "are", text,
                    no_records.size() == 1 && job.missing().size() == 1
                        ? std::string{"it"}
                        : fmt::format("{} of them", no_records.size()));
  }
  finding.text += indirect_text(evidence, others, 0);
  std::ranges::copy(others.nodes, std::back_inserter(waiting));
  finding.waiting = ranks_of(job, waiting);
  return {finding};
}

namespace {

RankActivity activity_of(const Evidence& evidence, std::size_t node) {
  const NodeState& state = evidence.graph.nodes[node];
  const Record& record = evidence.job.record(node);
  RankActivity activity{
      .record = evidence.job.record_index(node), .rank = record.rank, .activity = state.activity};
  if (state.call != none) activity.call = state.call;
  const Call* const call = state.call == none ? nullptr : &record.calls[state.call];
  switch (state.activity) {
    case Activity::call:
      activity.text = "in " + to_string(record, *call);
      activity.since = call->begin;
      break;
    case Activity::wait:
      activity.text = "in " + record.wait->text;
      activity.since = record.wait->since;
      break;
    case Activity::outside:
      activity.text = record.calls.empty() ? "outside rankmesh, no call was made"
                                           : "outside rankmesh since " + to_string(record, *call);
      if (call != nullptr) activity.since = call->end;
      break;
    default:
      activity.text = doing(record, nullptr);
  }
  if (state.point == none || state.is_old) return activity;
  const WaitPoint& point = evidence.graph.points[state.point];
  activity.is_certain = state.is_certain || !point.halted.empty();
  const std::vector<std::size_t> needed = evidence.graph.needed_by(node);
  activity.waits_for =
      needed.empty() ? RankSet::of(point.no_records) : ranks_of(evidence.job, needed);
  return activity;
}

bool waits(const NodeState& state) { return state.point != none && !state.is_old; }

// Whether the rank waits for ranks that its record does not name, as in new_group().
bool waits_for_unknown(const NodeState& state) {
  return state.activity == Activity::wait && state.call == none && state.point == none;
}

// Returns how many ranks do what, if nothing is wrong.
Finding progress_finding(const Evidence& evidence) {
  Finding finding;
  std::map<std::string, std::size_t> counts;
  for (const NodeState& state : evidence.graph.nodes) {
    switch (state.activity) {
      case Activity::wait:
        if (waits_for_unknown(state)) {
          ++counts["in rankmesh and waiting for ranks that the records do not name"];
          break;
        }
        [[fallthrough]];
      case Activity::call:
        ++counts[waits(state) ? "in rankmesh and waiting for other ranks"
                              : "in rankmesh and not waiting for other ranks"];
        break;
      case Activity::outside:
        ++counts["outside rankmesh"];
        break;
      case Activity::closed:
        ++counts["finished: the mesh is closed"];
        break;
      case Activity::destroyed:
      case Activity::failed:
        ++counts["finished: the mesh is destroyed"];
        break;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [text, count] : counts)
    parts.push_back(
        fmt::format("{} {} {}", count_text(count, "rank"), count == 1 ? "is" : "are", text));
  finding.text = fmt::format("{}: {}.",
                             std::ranges::any_of(evidence.graph.nodes, waits) ||
                                     std::ranges::any_of(evidence.graph.nodes, waits_for_unknown)
                                 ? "The records do not say why ranks wait"
                                 : "No rank waits for another rank",
                             fmt::join(parts, "; "));
  return finding;
}

// Says how ranks have ended that have not closed the mesh; nothing if none has. If all processes
// have ended without more, someone has ended the job.
std::vector<Finding> early_ends(const Evidence& evidence) {
  const Job& job = evidence.job;
  std::map<std::string, std::vector<std::size_t>> by_end;  // by what they have done
  std::vector<std::size_t> all;
  for (std::size_t node = 0; node < job.size(); ++node) {
    const Record& record = job.record(node);
    if (!is_gone(record) || record.presence == Presence::closed) continue;
    all.push_back(node);
    by_end[doing(record, blocked_call(evidence, node))].push_back(node);
  }
  const auto have = [&](Presence presence) {
    return std::ranges::any_of(
        all, [&](std::size_t node) { return job.record(node).presence == presence; });
  };
  const bool were_all_ended = all.size() == job.size() && !have(Presence::destroyed);
  if (!have(Presence::failed) && (!have(Presence::open) || were_all_ended)) return {};
  Finding finding{.severity = Finding::Severity::error};
  finding.ranks = ranks_of(job, all);
  std::vector<std::vector<std::size_t>> ends;
  for (auto& [text, nodes] : by_end) ends.push_back(std::move(nodes));
  // What the fewest ranks have done is more likely the cause.
  std::ranges::stable_sort(ends, {}, [](const auto& nodes) { return nodes.size(); });
  constexpr std::size_t most_ends = 4;
  for (std::size_t k = 0; k < std::min(ends.size(), most_ends); ++k) {
    const std::size_t first = ends[k].front();
    finding.text +=
        fmt::format("{}{} {}.", k == 0 ? "" : " ", capital(name_ranks(job, ends[k])),
                    doing(job.record(first), blocked_call(evidence, first), ends[k].size() > 1));
  }
  if (ends.size() > most_ends)
    finding.text += fmt::format(" Others ended in {} other ways.", ends.size() - most_ends);
  return {finding};
}

}  // namespace
}  // namespace detail

bool Diagnosis::has_error() const {
  return std::ranges::any_of(
      findings, [](const Finding& f) { return f.severity == Finding::Severity::error; });
}

Diagnosis diagnose(std::span<const Record> records) {
  Diagnosis diagnosis;
  const detail::Job job{records};
  if (job.size() == 0) return diagnosis;
  const detail::Messages messages{job};
  const std::vector<detail::Difference> differences = detail::differences_of(job);
  std::vector<std::uint64_t> differing(job.groups().size());
  for (const detail::Difference& difference : differences)
    differing[difference.group] = difference.number;
  const detail::WaitGraph graph{job, messages, differing};
  const detail::Evidence evidence{job, messages, graph};
  for (std::size_t node = 0; node < job.size(); ++node)
    diagnosis.ranks.push_back(detail::activity_of(evidence, node));
  diagnosis.missing = job.missing();

  std::vector<detail::Circle> in_circle(job.size());
  const auto add = [&](std::vector<Finding> findings) {
    detail::shorten(findings);
    std::ranges::move(findings, std::back_inserter(diagnosis.findings));
  };
  add(detail::different_calls(job, differences));
  add(detail::circles_of_waits(evidence, in_circle));
  add(detail::crossed_device_calls(job));
  add(detail::message_findings(evidence, in_circle));
  add(detail::chains_of_waits(evidence, in_circle));
  add(detail::unequal_ends(job));
  if (diagnosis.findings.empty()) add(detail::early_ends(evidence));
  const bool is_quiet = diagnosis.findings.empty();
  add(detail::missing_records(evidence));
  // The other ranks may wait for ranks without a record, directly or through other ranks.
  if (is_quiet && std::ranges::none_of(diagnosis.findings, [](const Finding& finding) {
        return !finding.waiting.empty();
      }))
    diagnosis.findings.insert(diagnosis.findings.begin(), detail::progress_finding(evidence));
  std::ranges::stable_sort(diagnosis.findings, {}, &Finding::severity);
  return diagnosis;
}

std::string_view to_string(Finding::Kind kind) {
  return rankmesh::detail::name_in(
      {"different_calls", "missing_call", "circle", "message", "waits", "no_record", "progress"},
      kind);
}

std::string_view to_string(Activity activity) {
  return rankmesh::detail::name_in({"call", "wait", "outside", "closed", "destroyed", "failed"},
                                   activity);
}

std::string_view to_string(Process process) {
  return rankmesh::detail::name_in({"unknown", "running", "sleeping", "stopped", "ended"}, process);
}

}  // namespace rankmesh::record

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/findings.hpp"
#include "detail/sentences.hpp"

namespace rankmesh::record::detail {
namespace {

std::string name_one(const Job& job, std::size_t node) { return name_ranks(job, {&node, 1}); }

Step end_step(const Job& job, std::size_t node, const std::string& text) {
  return {ranks_of(job, {&node, 1}), text, {}};
}

bool has_equal_size(const CallDescriptor& a, const CallDescriptor& b) {
  return a.count == b.count && a.type() == b.type();
}

// The first message whose ends have different sizes.
std::optional<Finding> size_finding(const Job& job, const StreamKey& key, const Stream& stream) {
  const std::size_t both = std::min(stream.sends.size(), stream.receives.size());
  for (std::size_t i = 0; i < both; ++i) {
    const Call& send = job.record(key.sender).calls[stream.sends[i]];
    const Call& receive = job.record(key.receiver).calls[stream.receives[i]];
    // The descriptor of send_recv contains only the size of the sent message.
    if (receive.descriptor.operation() != Operation::recv ||
        has_equal_size(send.descriptor, receive.descriptor))
      continue;
    const std::string sends = to_string(job.record(key.sender), send);
    const std::string receives = to_string(job.record(key.receiver), receive);
    Finding finding{.kind = Finding::Kind::message, .severity = Finding::Severity::error};
    finding.steps = {end_step(job, key.sender, sends), end_step(job, key.receiver, receives)};
    finding.text =
        fmt::format("Message {} from {} to {} has different sizes at its ends: {} and {}.", i + 1,
                    name_one(job, key.sender), name_one(job, key.receiver), sends, receives);
    return finding;
  }
  return std::nullopt;
}

// Messages of which one end is missing, because the rank at this end makes no more calls.
std::optional<Finding> left_over(const Job& job, const StreamKey& key, const Stream& stream) {
  const bool is_send = stream.sends.size() > stream.receives.size();
  if (stream.sends.size() == stream.receives.size()) return std::nullopt;
  const std::size_t node = is_send ? key.sender : key.receiver;
  const std::size_t other = is_send ? key.receiver : key.sender;
  if (!is_gone(job.record(other))) return std::nullopt;
  const auto& calls = is_send ? stream.sends : stream.receives;
  const std::size_t first = std::min(stream.sends.size(), stream.receives.size());
  const Call& call = job.record(node).calls[calls[first]];
  // If a rank was killed, the missing messages are not a mistake of the program.
  using enum Severity;
  Finding finding{.kind = Finding::Kind::message,
                  .severity = call.is_over() || call.is_async ? warning : error};
  const std::string text = to_string(job.record(node), call);
  const std::string does = doing(job.record(other), nullptr);
  finding.steps = {end_step(job, node, text), end_step(job, other, does)};
  const std::size_t count = calls.size() - first;
  const std::string what =
      is_send ? "sent " + count_text(count, "message") + " to " + name_one(job, other)
              : "called " + count_text(count, "receive") + " from " + name_one(job, other);
  finding.text = capital(fmt::format(
      "{} {} that {} no matching {}: {}; {} {}.", name_one(job, node), what,
      count == 1 ? "has" : "have", is_send ? "receive" : "send", text, name_one(job, other), does));
  return finding;
}

// Returns the call in which the other rank is.
std::string instead(const Evidence& evidence, const MessageEnd& end) {
  const Job& job = evidence.job;
  const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
  const Call* const call = blocked_call(evidence, other);
  return call == nullptr ? "" : fmt::format("; it is in {}", to_string(job.record(other), *call));
}

// A message of other calls between the same ranks that has no receive: its tag or group may be
// wrong.
std::string unreceived(const Evidence& evidence, const MessageEnd& end) {
  if (end.is_send) return "";
  const Record& record = evidence.job.record(end.key.sender);
  for (std::size_t i = record.calls.size(); i-- > 0;) {
    if (!is_point_to_point(record.calls[i].descriptor.operation())) continue;
    for (const MessageEnd& sent : Messages::ends_of(evidence.job, end.key.sender, record.calls[i]))
      if (sent.is_send && sent.key.receiver == end.key.receiver && sent.key != end.key &&
          evidence.messages.match_of(evidence.job, sent, i) == Messages::Match::not_made)
        return fmt::format(" The sender has called {}, which has no receive.",
                           to_string(record, record.calls[i]));
  }
  return "";
}

// A message in which a rank waits for ever.
std::optional<Finding> stuck_message(const Evidence& evidence, std::size_t node,
                                     const MessageEnd& end, Circle circle) {
  const Job& job = evidence.job;
  const NodeState& state = evidence.graph.nodes[node];
  const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
  if (other == none ||
      evidence.messages.match_of(job, end, state.call) != Messages::Match::not_made)
    return std::nullopt;
  const std::string hint = unreceived(evidence, end);
  if (circle == Circle::no && hint.empty()) return std::nullopt;
  using enum Severity;
  Finding finding{.kind = Finding::Kind::message,
                  .severity = circle == Circle::certain ? error : warning};
  const Call& call = job.record(node).calls[state.call];
  const std::string text = to_string(job.record(node), call);
  finding.steps = {end_step(job, node, text), end_step(job, other, wait_text(evidence, other))};
  finding.text = capital(fmt::format(
      "{} is in {}, but {} has not called the matching {}{}.{}", name_one(job, node), text,
      name_one(job, other), end.is_send ? "receive" : "send", instead(evidence, end), hint));
  return finding;
}

// Adds one message for each pair of ranks: a receive rather than a send, because the text of a
// receive says more.
void add_stuck_messages(
    const Evidence& evidence, const std::vector<Circle>& in_circle,
    const std::function<void(std::size_t, std::size_t, std::optional<Finding>)>& add) {
  const Job& job = evidence.job;
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (const bool is_send : {false, true}) {
    for (std::size_t node = 0; node < job.size(); ++node) {
      const NodeState& state = evidence.graph.nodes[node];
      if (state.point == none || state.call == none || state.is_old) continue;
      const Call& call = job.record(node).calls[state.call];
      if (!is_point_to_point(call.descriptor.operation())) continue;
      for (const MessageEnd& end : Messages::ends_of(job, node, call)) {
        const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
        if (end.is_send != is_send || other == none || is_gone(job.record(other))) continue;
        auto finding = stuck_message(evidence, node, end, in_circle[node]);
        if (finding && pairs.insert(std::minmax(node, other)).second)
          add(node, other, std::move(finding));
      }
    }
  }
}

// `rank 3 waits for tag 23 from rank 5, which has not sent it`
std::string unmatched_text(const Job& job, std::size_t node, const MessageEnd& end) {
  const std::string tag = end.key.tag < 0 ? "a message" : fmt::format("tag {}", end.key.tag);
  if (end.is_send)
    return fmt::format("{} waits with {} for {}, which has not called the receive",
                       name_one(job, node), tag, name_one(job, end.key.receiver));
  return fmt::format("{} waits for {} from {}, which has not sent it", name_one(job, node), tag,
                     name_one(job, end.key.sender));
}

// The messages for which ranks have waited for long although nothing shows that they wait for ever.
std::optional<Finding> unmatched_messages(const Evidence& evidence,
                                          const std::vector<Circle>& in_circle) {
  constexpr std::size_t most_messages = 4;
  const Job& job = evidence.job;
  Finding finding{.kind = Finding::Kind::message};
  std::vector<std::string> texts;
  std::vector<std::size_t> ends;
  for (std::size_t node = 0; node < job.size(); ++node) {
    const NodeState& state = evidence.graph.nodes[node];
    if (state.point == none || state.call == none || state.is_old || !state.since ||
        in_circle[node] != Circle::no || job.record(node).read_at - *state.since < long_wait)
      continue;
    for (const MessageEnd& end : Messages::ends_of(job, node, job.record(node).calls[state.call])) {
      const std::size_t other = end.is_send ? end.key.receiver : end.key.sender;
      if (other == none || is_gone(job.record(other)) || !unreceived(evidence, end).empty() ||
          evidence.messages.match_of(job, end, state.call) != Messages::Match::not_made)
        continue;
      texts.push_back(unmatched_text(job, node, end));
      finding.steps.push_back(end_step(job, node, wait_text(evidence, node)));
      finding.steps.push_back(end_step(job, other, wait_text(evidence, other)));
      ends.insert(ends.end(), {node, other});
    }
  }
  if (texts.empty()) return std::nullopt;
  finding.ranks = ranks_of(job, ends);
  const std::size_t more = texts.size() - std::min(texts.size(), most_messages);
  texts.resize(texts.size() - more);
  finding.text = capital(fmt::format("{}", fmt::join(texts, "; ")));
  finding.text += more == 0 ? "." : fmt::format("; and {}.", count_text(more, "more message"));
  return finding;
}

}  // namespace

std::vector<Finding> message_findings(const Evidence& evidence,
                                      const std::vector<Circle>& in_circle) {
  const Job& job = evidence.job;
  std::vector<std::pair<std::size_t, Finding>> found;  // with the rank that calls first
  const auto add = [&](std::size_t node, std::size_t other, std::optional<Finding> finding) {
    if (!finding) return;
    finding->ranks = ranks_of(job, std::vector{std::min(node, other), std::max(node, other)});
    found.emplace_back(node, std::move(*finding));
  };
  for (const auto& [key, stream] : evidence.messages.streams()) {
    if (key.sender == none || key.receiver == none || !job.is_complete(key.sender) ||
        !job.is_complete(key.receiver))
      continue;
    add(key.sender, key.receiver, size_finding(job, key, stream));
    add(key.sender, key.receiver, left_over(job, key, stream));
  }
  add_stuck_messages(evidence, in_circle, add);
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second.text) < std::tie(b.first, b.second.text);
  });
  std::vector<Finding> findings;
  for (auto& [node, finding] : found) findings.push_back(std::move(finding));
  if (auto finding = unmatched_messages(evidence, in_circle))
    findings.push_back(std::move(*finding));
  return findings;
}

}  // namespace rankmesh::record::detail

// SPDX-License-Identifier: BSD-3-Clause
#include "detail/sentences.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "record/diagnosis.hpp"
#include "record/matching.hpp"

namespace rankmesh::record {

std::string duration_text(Time duration) {
  constexpr Time milli = 1'000'000, second = 1'000'000'000;
  const Time t = std::max<Time>(duration, 0);
  if (t < milli) return fmt::format("{} us", t / 1000);
  if (t < second) return fmt::format("{} ms", t / milli);
  if (t < 60 * second) return fmt::format("{:.1f} s", static_cast<double>(t / (second / 10)) / 10);
  const Time seconds = t / second;
  if (seconds < 3600) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3600, seconds / 60 % 60);
}

namespace detail {
namespace {

// The form of a verb for one rank or for several ranks.
std::string_view verb_of(bool is_plural, std::string_view one, std::string_view several) {
  return is_plural ? several : one;
}

std::string text_of_last_call(const Record& record) {
  const Call& call = record.calls.back();
  std::string text = to_string(record, call);
  if (call.state == State::failed) text += ", which failed";
  if (call.is_cancelled) text += ", which was cancelled";
  if (!call.is_over() && call.is_async) return "it issued " + text;
  return text;
}

}  // namespace

RankSet ranks_of(const Job& job, std::span<const std::size_t> nodes) {
  std::vector<Rank> ranks;
  ranks.reserve(nodes.size());
  for (const std::size_t node : nodes) ranks.push_back(job.rank(node));
  std::ranges::sort(ranks);
  const auto repeated = std::ranges::unique(ranks);
  ranks.erase(repeated.begin(), repeated.end());
  return RankSet::of(ranks);
}

std::string name_ranks(const Job& job, std::span<const std::size_t> nodes) {
  constexpr std::size_t most_single_names = 3;
  constexpr std::size_t most_characters = 60;
  if (nodes.size() == 1) return "rank " + name_of(job.record(nodes.front()));
  if (nodes.size() > most_single_names)
    return fmt::format("ranks {} ({} ranks)", ranks_of(job, nodes).to_string(most_characters),
                       nodes.size());
  std::string text = "ranks ";
  for (std::size_t i = 0; i < nodes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == nodes.size() ? " and " : ", ") + name_of(job.record(nodes[i]));
  return text;
}

std::string name_of_call(const Record& record, const Call& call) {
  const std::string text = to_string(record, call);
  return text.substr(0, text.find('(', family_of(record, call).size()));  // `group(0-2)` has one
}

std::string short_call_text(const Record& record, const Call& call) {
  std::string text = to_string(record, call);
  if (call.number == 0) return text;  // the other member and the tag say which message it is
  return fmt::format("{}, call {}", name_of_call(record, call), call.number);
}

std::string number_ranks(const Job& job, std::span<const std::size_t> nodes) {
  const RankSet ranks = ranks_of(job, nodes);
  if (ranks.size() == 1) return "rank " + ranks.to_string();
  if (ranks.size() > 2) return fmt::format("ranks {}", ranks.to_string(60));
  return fmt::format("ranks {} and {}", ranks.at(0).value(), ranks.at(1).value());
}

std::string doing(const Record& record, const Call* blocked, bool is_plural,
                  std::optional<Process> process) {
  const auto verb = [&](std::string_view one, std::string_view several) {
    return verb_of(is_plural, one, several);
  };
  const std::string_view has = verb("has", "have");
  switch (record.presence) {
    case Presence::failed:
      return fmt::format("{} left the mesh by an exception{}{}", has,
                         record.reason.empty() ? "" : ": ", record.reason);
    case Presence::destroyed:
      return fmt::format("{} destroyed the mesh without close()", has);
    case Presence::closed:
      return fmt::format("{} closed the mesh", has);
    case Presence::open:
      break;
  }
  std::string where = "outside rankmesh, before any call";
  if (blocked != nullptr)
    where = "in " + to_string(record, *blocked);
  else if (record.wait)
    where = "in " + record.wait->text;
  else if (!record.calls.empty())
    where = "outside rankmesh, after " + text_of_last_call(record);
  if (record.process == Process::ended)
    return fmt::format("{} ended {}", verb("has", "have"), where);
  if (record.process == Process::stopped)
    return fmt::format("{} stopped by a signal or a debugger {}", verb("is", "are"), where);
  if (blocked != nullptr || record.wait) return fmt::format("{} {}", verb("is", "are"), where);
  const Process state = process.value_or(record.process);
  const std::string_view runs = state == Process::running    ? verb("runs", "run")
                                : state == Process::sleeping ? verb("sleeps", "sleep")
                                                             : verb("is", "are");
  if (record.calls.empty())
    return fmt::format("{} outside rankmesh and {} made no call", runs, has);
  return fmt::format("{} outside rankmesh since {}", runs, text_of_last_call(record));
}

std::string since_text(const Job& job, std::span<const std::size_t> nodes, bool is_in_call) {
  std::vector<Time> ages;
  for (const std::size_t node : nodes) {
    const Record& record = job.record(node);
    if (record.presence != Presence::open) return "";
    std::optional<Time> since;
    if (!is_in_call && !record.calls.empty()) since = record.calls.back().end;
    if (is_in_call && record.wait) since = record.wait->since;
    if (is_in_call)
      for (std::size_t i = record.calls.size(); i-- > 0 && !since;)
        if (!record.calls[i].is_over() && !record.calls[i].is_async) since = record.calls[i].begin;
    if (since) ages.push_back(record.read_at - *since);
  }
  if (ages.empty() || ages.size() != nodes.size()) return "";
  const auto [least, most] = std::ranges::minmax(ages);
  const std::string from = duration_text(least), to = duration_text(most);
  const std::string range = from == to ? to : from + " to " + to;
  return is_in_call ? fmt::format(", which began {} ago", range)
                    : fmt::format(", which ended {} ago", range);
}

std::string mark_text(const Job& job, std::span<const std::size_t> nodes) {
  const auto last_mark = [&](std::size_t node) {
    const Record& record = job.record(node);
    return record.marks.empty() ? std::string_view{} : std::string_view{record.marks.back().text};
  };
  const std::string_view mark = last_mark(nodes.front());
  const bool is_shared =
      std::ranges::all_of(nodes, [&](std::size_t node) { return last_mark(node) == mark; });
  return mark.empty() || !is_shared ? "" : fmt::format("; the last mark is \"{}\"", mark);
}

std::string capital(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace detail
}  // namespace rankmesh::record

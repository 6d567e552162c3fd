// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "detail/timeline_rows.hpp"
#include "record/statistics.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

using record::FamilyActivity;
using record::Record;
using record::Time;

/// Returns a figure with three digits and a unit: `12.3k`.
std::string scaled(double figure, double base, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (figure >= base * 0.9995 && unit + 1 < units.size()) {
    figure /= base;
    ++unit;
  }
  const int digits = figure >= 100 || figure == 0 || (unit == 0 && figure >= 10) ? 0
                     : figure >= 10                                              ? 1
                                                                                 : 2;
  return fmt::format("{:.{}f}{}", figure, digits, units[unit]);
}

std::string calls_text(const FamilyActivity& family) {
  return (family.is_extrapolated ? "~" : "") +
         scaled(family.calls_per_second(), 1000, {"", "k", "M", "G", "T"});
}

std::string bytes_text(const FamilyActivity& family) {
  return (family.is_extrapolated ? "~" : "") +
         scaled(family.bytes_per_second(), 1024, {" B", " KiB", " MiB", " GiB", " TiB"});
}

std::string duration_text(Time time) {
  const double seconds = static_cast<double>(time) / 1e9;
  if (seconds >= 120) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds >= 0.9995) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 0.9995e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

/// A rank that is in a call or waits.
struct Waiting {
  std::size_t record = 0;
  Time since = 0;
};

/// Returns the ranks that are in a call or wait, those that have waited longest first.
std::vector<Waiting> waiting_ranks(std::span<const Record> now) {
  std::vector<Waiting> result;
  for (std::size_t r = 0; r < now.size(); ++r) {
    std::optional<Time> since;
    if (now[r].wait) since = now[r].wait->since;
    for (const record::Call& call : now[r].calls)
      if (!call.is_over() && !call.is_async && !call.is_captured && call.begin && !since)
        since = call.begin;
    if (since) result.push_back({r, std::max<Time>(now[r].read_at - *since, 0)});
  }
  std::ranges::stable_sort(result, std::ranges::greater{}, &Waiting::since);
  return result;
}

Json last_field(const FamilyActivity& family, std::span<const Record> now) {
  const auto last = family.most_often_last();
  if (!last) return {};
  const record::Lateness& lateness = family.last.at(*last);
  return {{"rank", now[*last].rank.value()},
          {"coordinates", now[*last].coordinates},
          {"host", now[*last].host},
          {"times", lateness.times},
          {"seconds_caused", static_cast<double>(lateness.caused) / 1e9}};
}

Json family_fields(const FamilyActivity& family, std::span<const Record> now) {
  return {{"name", family.name},
          {"ranks", family.ranks},
          {"calls_per_second", family.calls_per_second()},
          {"bytes_per_second", family.bytes_per_second()},
          {"extrapolated", family.is_extrapolated},
          {"waited_share", family.waited_share()},
          {"decided", family.decided},
          {"undecided", family.undecided},
          {"most_often_last", last_field(family, now)}};
}

std::vector<Cell> row_of(const FamilyActivity& family, std::span<const Record> now) {
  std::vector<Cell> row{family.name, calls_text(family), bytes_text(family),
                        fmt::format("{:.1f}%", family.waited_share() * 100)};
  const auto last = family.most_often_last();
  if (!last) {
    row.insert(row.end(), {"-", "-", "-", "-"});
    return row;
  }
  const record::Lateness& lateness = family.last.at(*last);
  row.insert(row.end(), {record::name_of(now[*last]), now[*last].host,
                         fmt::format("{} of {}", lateness.times, family.decided),
                         duration_text(lateness.caused)});
  return row;
}

std::string head_of(std::span<const Record> now, double seconds) {
  std::set<std::int32_t> nodes;
  for (const Record& record : now) nodes.insert(record.node);
  return fmt::format("  {} on {}, the last {:.1f} s\n\n", count_text(now.size(), "rank"),
                     count_text(nodes.size(), "node"), seconds);
}

void add_waiting(std::span<const Record> now, std::size_t most, Document& document) {
  const std::vector<Waiting> waiting = waiting_ranks(now);
  Json& list = document.fields["waiting"] = Json::array();
  std::string lines;
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    const Record& record = now[waiting[i].record];
    const std::string activity = detail::activity_of(record);
    list.push_back({{"rank", record.rank.value()},
                    {"host", record.host},
                    {"activity", activity},
                    {"seconds", static_cast<double>(waiting[i].since) / 1e9}});
    if (i < most)
      lines += fmt::format("  rank {} on {}: {}, for {}\n", record::name_of(record), record.host,
                           activity, duration_text(waiting[i].since));
  }
  if (lines.empty()) return;
  document.add_bold(fmt::format("\n{} rank{} in a call or waiting", waiting.size(),
                                waiting.size() == 1 ? " is" : "s are"));
  document.add("\n" + lines);
}

}  // namespace

Document follow(std::span<const Record> before, std::span<const Record> now,
                std::size_t most_lines) {
  record::JobActivity activity = record::activity_between(before, now);
  std::ranges::stable_sort(activity.families, std::ranges::greater{},
                           &FamilyActivity::waited_share);
  Document document{.schema = "rankmesh.follow/1"};
  document.table.add_columns({"family"});
  document.table.add_columns({"calls/s", "bytes/s", "waited"}, right);
  document.table.add_columns({"last most often", "host"});
  document.table.add_columns({"last in", "others waited"}, right);
  Json families = Json::array();
  std::int64_t undecided = 0;
  for (const FamilyActivity& family : activity.families) {
    families.push_back(family_fields(family, now));
    document.table.rows.push_back(row_of(family, now));
    undecided += family.undecided;
  }
  const std::string mesh = now.empty() ? std::string{"no records"} : now.front().mesh;
  document.fields = {{"mesh", mesh},
                     {"ranks", now.size()},
                     {"seconds", activity.seconds},
                     {"families", std::move(families)}};
  document.add_bold(mesh);
  document.add(head_of(now, activity.seconds));
  // The head, the titles, the line about undecided calls, and the title of the ranks.
  const std::size_t lines_left = most_lines > 8 ? most_lines - 8 : 2;
  const std::size_t rows =
      std::clamp<std::size_t>(activity.families.size(), 1, lines_left - lines_left / 3);
  document.text.emplace_back(TableHere{rows});
  if (undecided > 0)
    document.add(fmt::format("  The last member of {} more calls is not known.\n", undecided));
  add_waiting(now, lines_left - std::min(lines_left, rows), document);
  return document;
}

}  // namespace rankmesh::report

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "rankmesh/record/find.hpp"
#include "report/detail/box_layout.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

using record::Diagnosis;
using record::Finding;
using record::RankActivity;
using record::Record;
using Records = std::span<const Record>;

constexpr std::size_t most_single_ranks = 16;
constexpr std::size_t most_lines = 100;
constexpr std::size_t line_width = 100;
// The error of a rank may name many ranks. The findings and JSON have the whole text.
constexpr std::size_t widest_cell = 120;

std::optional<record::Time> age_of(const Record& record, const RankActivity& rank) {
  return rank.since ? std::optional{record.read_at - *rank.since} : std::nullopt;
}

std::string ages_text(const std::vector<record::Time>& ages) {
  if (ages.empty()) return "";
  const auto [least, most] = std::ranges::minmax(ages);
  const std::string from = record::duration_text(least), to = record::duration_text(most);
  return from == to ? to : from + " - " + to;
}

// Whether the lines of the program are known, and the column that shows them.
bool have_lines(Records records) {
  return std::ranges::any_of(records,
                             [](const Record& record) { return !record.last_lines.empty(); });
}
constexpr const char* line_title = "last call made at";

std::string lines_text(const Record& record) {
  return fmt::format("{}", fmt::join(record.last_lines, " < "));
}

Table table_of_ranks(Records records, const Diagnosis& diagnosis) {
  Table table{.columns = {{"rank", right},
                          {"coordinates"},
                          {"host"},
                          {"process", right},
                          {"state"},
                          {"what it is in"},
                          {"for", right}}};
  if (have_lines(records)) table.columns.push_back({line_title});
  for (const RankActivity& rank : diagnosis.ranks) {
    const Record& record = records[rank.record];
    const auto age = age_of(record, rank);
    table.rows.push_back({rank.rank.value(), record.coordinates, record.host, record.process_id,
                          to_string(record.process), detail::shortened(rank.text, widest_cell),
                          age ? record::duration_text(*age) : std::string{}});
    if (have_lines(records)) table.rows.back().push_back(lines_text(record));
  }
  return table;
}

// Ranks that do the same.
struct Line {
  std::vector<Rank> ranks;
  std::set<std::string> hosts;
  std::vector<record::Time> ages;
  record::Process process{};
  std::string text, last_lines;
};

// One line for all ranks that do the same.
Table table_of_lines(Records records, const Diagnosis& diagnosis) {
  std::vector<Line> lines;
  std::map<std::tuple<record::Process, std::string, std::string>, std::size_t> by_text;
  for (const RankActivity& rank : diagnosis.ranks) {
    const Record& record = records[rank.record];
    const auto [at, is_new] =
        by_text.try_emplace({record.process, rank.text, lines_text(record)}, lines.size());
    if (is_new)
      lines.push_back(
          {.process = record.process, .text = rank.text, .last_lines = lines_text(record)});
    Line& line = lines[at->second];
    line.ranks.push_back(rank.rank);
    line.hosts.insert(record.host);
    if (const auto age = age_of(record, rank)) line.ages.push_back(*age);
  }
  Table table{.columns = {{.title = "ranks", .most = 40},
                          {"number", right},
                          {"host"},
                          {"state"},
                          {"what they are in"},
                          {"for", right}}};
  if (have_lines(records)) table.columns.push_back({line_title});
  for (const Line& line : lines) {
    table.rows.push_back(
        {Ranks{RankSet::of(line.ranks)}, line.ranks.size(),
         line.hosts.size() == 1 ? *line.hosts.begin() : fmt::format("{} hosts", line.hosts.size()),
         to_string(line.process), detail::shortened(line.text, widest_cell), ages_text(line.ages)});
    if (have_lines(records)) table.rows.back().push_back(line.last_lines);
  }
  return table;
}

// A paragraph of lines that are not too long. The second and later lines are indented.
std::string paragraph(const std::string& text) {
  std::string result, line = "  ";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() + word.size() > line_width && line.find_first_not_of(' ') != line.npos) {
      result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = "    ";
    }
    line += word + " ";
    at = end + 1;
  }
  return result + line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

void add_text(Records records, const Diagnosis& diagnosis, Document& document) {
  if (!document.text.empty()) document.add("\n");
  const Record& first = records.front();
  std::set<std::string> hosts;
  for (const RankActivity& rank : diagnosis.ranks) hosts.insert(records[rank.record].host);
  document.add_bold(fmt::format("mesh {}", first.mesh));
  document.add(fmt::format("   {} of {} on {}\n\n", diagnosis.ranks.size(),
                           count_text(first.world_size, "rank"), count_text(hosts.size(), "host")));
  const bool is_grouped = diagnosis.ranks.size() > most_single_ranks;
  Table table =
      is_grouped ? table_of_lines(records, diagnosis) : table_of_ranks(records, diagnosis);
  const std::size_t rows = table.rows.size();
  if (rows > most_lines) table.rows.resize(most_lines);
  document.text.emplace_back(std::move(table));
  if (rows > most_lines)
    document.add(
        fmt::format("  {} more lines are left out; JSON and CSV have them\n", rows - most_lines));
  document.add("\n");
  for (const Finding& finding : diagnosis.findings)
    document.add(paragraph(fmt::format("{}: {}", to_string(finding.severity), finding.text)));
}

Json finding_value(const Finding& finding) {
  Json value{{"kind", to_string(finding.kind)},
             {"severity", to_string(finding.severity)},
             {"text", finding.text},
             {"ranks", Ranks{finding.ranks}},
             {"waiting", Ranks{finding.waiting}},
             {"steps", Json::array()}};
  for (const record::Step& step : finding.steps)
    value["steps"].push_back(
        {{"ranks", Ranks{step.ranks}}, {"text", step.text}, {"waits_for", Ranks{step.waits_for}}});
  return value;
}

std::vector<Cell> row_of(const Record& record, const RankActivity& rank) {
  const auto age = age_of(record, rank);
  const bool has_call = !record.calls.empty() && record.calls.back().group < record.groups.size();
  return {record.mesh,
          fmt::format("{:016x}", record.mesh_key),
          rank.rank.value(),
          record.coordinates,
          record.host,
          record.process_id,
          to_string(record.process),
          to_string(rank.activity),
          rank.text,
          age ? Json(static_cast<double>(*age) / 1e9) : Json(),
          Ranks{rank.waits_for},
          rank.is_certain,
          has_call ? Json(record::to_string(record, record.calls.back())) : Json(),
          record.last_lines,
          record.marks.empty() ? Json() : Json(record.marks.back().text)};
}

void add_mesh(Records records, const Diagnosis& diagnosis, Document& document) {
  add_text(records, diagnosis, document);
  const Record& first = records.front();
  Table table{.columns = document.table.columns};
  for (const RankActivity& rank : diagnosis.ranks)
    table.rows.push_back(row_of(records[rank.record], rank));
  Json value{{"key", fmt::format("{:016x}", first.mesh_key)},
             {"mesh", first.mesh},
             {"world_size", first.world_size},
             {"missing", Ranks{diagnosis.missing}},
             {"has_error", diagnosis.has_error()},
             {"ranks", table.objects({"rank", "coordinates", "host", "process_id", "process",
                                      "activity", "text", "seconds", "waits_for", "is_certain",
                                      "last_call", "last_lines", "last_mark"})},
             {"findings", Json::array()}};
  for (const Finding& finding : diagnosis.findings)
    value["findings"].push_back(finding_value(finding));
  document.fields["meshes"].push_back(std::move(value));
  std::ranges::move(table.rows, std::back_inserter(document.table.rows));
}

}  // namespace

Document trace(const std::vector<std::vector<Record>>& meshes,
               const std::vector<Diagnosis>& diagnoses) {
  Document document{.schema = "rankmesh.trace/1", .fields = {{"meshes", Json::array()}}};
  document.table.add_columns({"mesh", "key", "rank", "coordinates", "host", "process_id", "process",
                              "activity", "text", "seconds", "waits_for"});
  for (const char* title : {"is_certain", "last_call", "last_lines", "last_mark"})
    document.table.columns.push_back({.title = title, .forms = Table::Forms::json_only});
  for (std::size_t m = 0; m < meshes.size(); ++m) add_mesh(meshes[m], diagnoses[m], document);
  return document;
}

Document trace(std::vector<Record> records) {
  const auto meshes = record::by_mesh(std::move(records));
  std::vector<Diagnosis> diagnoses;
  for (const auto& mesh : meshes) diagnoses.push_back(record::diagnose(mesh));
  return trace(meshes, diagnoses);
}

}  // namespace rankmesh::report

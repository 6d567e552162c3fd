// SPDX-License-Identifier: BSD-3-Clause
// The report of doctor.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/doctor.hpp"
#include "rankmesh/base/launcher.hpp"

namespace rankmesh::report {
namespace {

using detail::by_node;
using detail::cores_of;
using detail::ranks_of;
using detail::ranks_text;
using detail::set_of;
using detail::size_text;

std::size_t count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

// The hosts of the ranks, as "h0, h1, ..."; long lists are cut.
std::string hosts_text(const Examination& job, const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most = 4;
  std::vector<std::string> hosts;
  std::set<std::int32_t> seen;
  for (const std::int64_t rank : ranks) {
    const RankFacts& facts = job.ranks[static_cast<std::size_t>(rank)];
    if (seen.insert(facts.node).second) hosts.push_back(facts.host);
  }
  const bool is_cut = hosts.size() > most;
  if (is_cut) hosts.resize(most);
  return fmt::format("{}{}", fmt::join(hosts, ", "), is_cut ? ", ..." : "");
}

std::string place_text(const Examination& job, const Finding& found) {
  if (found.ranks.empty()) return "the whole job";
  return fmt::format("{} ({})",
                     found.ranks.size() == job.ranks.size() && found.ranks.size() > 1
                         ? std::string{"all ranks"}
                         : ranks_text(found.ranks),
                     hosts_text(job, found.ranks));
}

// Returns the table of the nodes, and adds them to JSON.
Table add_nodes(const Examination& job, Json& nodes) {
  Table table{.columns = {{"host"}, {.title = "ranks", .most = 28}}};
  table.add_columns({"cores", "/dev/shm free", "clock ms"}, right);
  table.add_columns({"to"});
  table.add_columns({"latency us", "GB/s"}, right);
  for (const auto& [node, members] : by_node(job)) {
    const RankFacts& leader = *members.front();
    const auto& clock = leader.clock;
    const auto& link = leader.link;
    const Ranks ranks{set_of(ranks_of(members))};
    const std::size_t cores = cores_of(members).size();
    table.rows.push_back(
        {leader.host, ranks, cores,
         leader.shared_memory_free < 0 ? "none" : size_text(leader.shared_memory_free),
         clock ? fmt::format("{:+.2f}", 1e3 * clock->offset) : "-",
         link ? job.ranks[static_cast<std::size_t>(link->to)].host : "-",
         link ? fmt::format("{:.1f}", 1e6 * link->latency) : "-",
         link ? fmt::format("{:.3g}", link->bandwidth / 1e9) : "-"});
    Json& entry = nodes.emplace_back(Json{{"host", leader.host},
                                          {"ranks", ranks},
                                          {"cores", cores},
                                          {"shared_memory_free", leader.shared_memory_free}});
    if (clock)
      entry["clock"] = {{"offset_seconds", clock->offset}, {"error_seconds", clock->error}};
    if (link)
      entry["link"] = {{"to_rank", link->to},
                       {"latency_seconds", link->latency},
                       {"bytes_per_second", link->bandwidth}};
  }
  return table;
}

Json libraries_value(const Examination& job) {
  Json libraries = Json::array();
  for (const LibraryFacts& library : job.ranks.front().libraries)
    libraries.push_back(
        {{"name", library.name}, {"version", library.version}, {"path", library.path}});
  return libraries;
}

void add_heading(Document& document, const Examination& job, const std::string& start) {
  const RankFacts& first = job.ranks.front();
  if (!start.empty()) {
    document.add(fmt::format("doctor  host {}, without a job\n\n", first.host));
    document.add(fmt::format(
        "  Only this machine was checked. To compare all ranks, start doctor like the program:\n"
        "  {}\n\n",
        start));
    return;
  }
  document.add(fmt::format("doctor  {} on {}, {}\n\n", count_text(job.ranks.size(), "rank"),
                           count_text(by_node(job).size(), "node"),
                           short_mpi_name(first.mpi_library)));
}

void add_finding(Document& document, const Examination& job, const Finding& found) {
  document.add_bold(fmt::format("{}  {}", to_string(found.severity), found.id));
  document.add(fmt::format("  {}\n  what  {}\n  why   {}\n  fix   {}\n\n", place_text(job, found),
                           found.what, found.why, found.fix));
  document.table.rows.push_back(
      {to_string(found.severity), found.id,
       found.ranks.empty() ? Cell("all") : Cell(Ranks{set_of(found.ranks)}),
       hosts_text(job, found.ranks), found.what, found.why, found.fix});
}

std::string summary(const std::vector<Finding>& findings) {
  const std::string rules = fmt::format("{} rules were applied", doctor_rules().size());
  if (findings.empty()) return fmt::format("Nothing was found; {}.\n", rules);
  return fmt::format("{}, {}, {}; {}.\n", count_text(count(findings, Severity::error), "error"),
                     count_text(count(findings, Severity::warning), "warning"),
                     count_text(count(findings, Severity::note), "note"), rules);
}

}  // namespace

Document doctor(const Examination& job, const std::vector<Finding>& findings,
                const std::string& start) {
  const bool in_job = start.empty();
  Document document{.schema = "rankmesh.doctor/1",
                    .fields = {{"in_job", in_job},
                               {"ranks", job.ranks.size()},
                               {"errors", count(findings, Severity::error)},
                               {"warnings", count(findings, Severity::warning)},
                               {"notes", count(findings, Severity::note)}}};
  document.table.add_columns({"severity", "id", "ranks", "hosts", "what", "why", "fix"});
  add_heading(document, job, start);
  for (const Finding& found : findings) add_finding(document, job, found);
  Json nodes = Json::array();
  Table table = add_nodes(job, nodes);
  if (in_job) {
    document.text.emplace_back(std::move(table));
    document.add("\n");
  }
  document.add(summary(findings));

  document.fields["findings"] =
      document.table.objects({"id", "severity", "ranks", "hosts", "what", "why", "fix"});
  document.fields["nodes"] = std::move(nodes);
  document.fields["libraries"] = libraries_value(job);
  return document;
}

}  // namespace rankmesh::report

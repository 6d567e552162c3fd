// SPDX-License-Identifier: BSD-3-Clause
// The report of doctor.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/doctor.hpp"
#include "rankmesh/base/launcher.hpp"

namespace rankmesh::report {
namespace {

using detail::by_node;
using detail::ranks_text;
using detail::size_text;
using rankmesh::detail::count_text;

std::size_t count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

RankSet set_of(const std::vector<std::int64_t>& ranks) {
  std::vector<Rank> list;
  for (const std::int64_t rank : ranks) list.emplace_back(rank);
  return RankSet::of(list);
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

std::vector<std::int64_t> ranks_of(const std::vector<const RankFacts*>& members) {
  std::vector<std::int64_t> ranks;
  for (const RankFacts* facts : members) ranks.push_back(facts->rank);
  return ranks;
}

std::size_t cores_of(const std::vector<const RankFacts*>& members) {
  std::set<int> cores;
  for (const RankFacts* facts : members) cores.insert(facts->cores.begin(), facts->cores.end());
  return cores.size();
}

Table nodes_table(const Examination& job) {
  using enum Table::Align;
  Table table{.columns = {{"host"},
                          {"ranks", left, Table::Forms::all, 28},
                          {"cores", right},
                          {"/dev/shm free", right},
                          {"clock ms", right},
                          {"to", left},
                          {"latency us", right},
                          {"GB/s", right}}};
  for (const auto& [node, members] : by_node(job)) {
    const RankFacts& leader = *members.front();
    const auto& link = leader.link;
    table.rows.push_back(
        {leader.host, Ranks{set_of(ranks_of(members))}, cores_of(members),
         leader.shared_memory_free < 0 ? "none" : size_text(leader.shared_memory_free),
         leader.clock ? fmt::format("{:+.2f}", 1e3 * leader.clock->offset) : "-",
         link ? job.ranks[static_cast<std::size_t>(link->to)].host : "-",
         link ? fmt::format("{:.1f}", 1e6 * link->latency) : "-",
         link ? fmt::format("{:.3g}", link->bandwidth / 1e9) : "-"});
  }
  return table;
}

Value nodes_value(const Examination& job) {
  Value nodes{Value::List{}};
  for (const auto& [node, members] : by_node(job)) {
    const RankFacts& leader = *members.front();
    Value entry{{"host", leader.host},
                {"ranks", Ranks{set_of(ranks_of(members))}},
                {"cores", cores_of(members)},
                {"shared_memory_free", leader.shared_memory_free}};
    if (leader.clock)
      entry["clock"] =
          Value{{"offset_seconds", leader.clock->offset}, {"error_seconds", leader.clock->error}};
    if (leader.link)
      entry["link"] = Value{{"to_rank", leader.link->to},
                            {"latency_seconds", leader.link->latency},
                            {"bytes_per_second", leader.link->bandwidth}};
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

Value libraries_value(const Examination& job) {
  Value libraries{Value::List{}};
  for (const LibraryFacts& library : job.ranks.front().libraries)
    libraries.push_back(
        {{"name", library.name}, {"version", library.version}, {"path", library.path}});
  return libraries;
}

void add_heading(Document& document, const Examination& job, bool in_job) {
  const RankFacts& first = job.ranks.front();
  if (!in_job) {
    document.add(fmt::format("doctor  host {}, without a job\n\n", first.host));
    document.add(
        "  Only this machine was checked. To compare all ranks, start doctor like the program:\n"
        "  mpirun -n 4 meshinfo doctor\n\n");
    return;
  }
  const std::size_t nodes = detail::node_count(job);
  document.add(fmt::format("doctor  {} on {}, {}\n\n", count_text(job.ranks.size(), "rank"),
                           count_text(nodes, "node"), short_mpi_name(first.mpi_library)));
}

void add_findings(Document& document, const Examination& job,
                  const std::vector<Finding>& findings) {
  for (const Finding& found : findings) {
    document.add_bold(fmt::format("{}  {}", to_string(found.severity), found.id));
    document.add(fmt::format("  {}\n  what  {}\n  why   {}\n  fix   {}\n\n", place_text(job, found),
                             found.what, found.why, found.fix));
  }
}

std::string summary(const std::vector<Finding>& findings) {
  const std::string rules = fmt::format("{} rules were applied", doctor_rules().size());
  if (findings.empty()) return fmt::format("Nothing was found; {}.\n", rules);
  return fmt::format("{}, {}, {}; {}.\n", count_text(count(findings, Severity::error), "error"),
                     count_text(count(findings, Severity::warning), "warning"),
                     count_text(count(findings, Severity::note), "note"), rules);
}

}  // namespace

Document doctor(const Examination& job, const std::vector<Finding>& findings, bool in_job) {
  Document document{
      .schema = "rankmesh.doctor/1",
      .fields = {{"in_job", in_job},
                 {"ranks", job.ranks.size()},
                 {"errors", count(findings, Severity::error)},
                 {"warnings", count(findings, Severity::warning)},
                 {"notes", count(findings, Severity::note)}},
      .table = {
          .columns = {{"severity"}, {"id"}, {"ranks"}, {"hosts"}, {"what"}, {"why"}, {"fix"}}}};
  add_heading(document, job, in_job);
  add_findings(document, job, findings);
  if (in_job) {
    document.text.emplace_back(nodes_table(job));
    document.add("\n");
  }
  document.add(summary(findings));

  Value list{Value::List{}};
  for (const Finding& found : findings) {
    const Value ranks = found.ranks.empty() ? Value{"all"} : Value{Ranks{set_of(found.ranks)}};
    const std::string hosts = hosts_text(job, found.ranks);
    list.push_back({{"id", found.id},
                    {"severity", to_string(found.severity)},
                    {"ranks", ranks},
                    {"hosts", hosts},
                    {"what", found.what},
                    {"why", found.why},
                    {"fix", found.fix}});
    document.table.rows.push_back(
        {to_string(found.severity), found.id, ranks, hosts, found.what, found.why, found.fix});
  }
  document.fields["findings"] = std::move(list);
  document.fields["nodes"] = nodes_value(job);
  document.fields["libraries"] = libraries_value(job);
  return document;
}

}  // namespace rankmesh::report

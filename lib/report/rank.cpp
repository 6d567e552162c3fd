// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/rank.hpp"

#include <fmt/format.h>

#include "detail/require_rank.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::report {
namespace {

struct LiveRank {
  std::string host;
  std::int64_t local_rank, process;
};

std::optional<LiveRank> facts_of(Rank rank, const LiveFacts* live) {
  if (live == nullptr) return std::nullopt;
  return LiveRank{live->hosts.at(static_cast<std::size_t>(live->placement.node(rank))),
                  live->placement.local_rank(rank),
                  live->process_ids.at(static_cast<std::size_t>(rank.value()))};
}

// In CSV every row has the rank's host, local rank and process too.
Table groups_table(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts) {
  using enum Table::Align;
  Table table{.columns = {{"rank", right, Table::Forms::csv_only},
                          {"name", left},
                          {"group", right},
                          {"rank in group", right},
                          {"size", right},
                          {"ranks", left, Table::Forms::all, 80}}};
  if (facts)
    for (const char* title : {"host", "local rank", "process"})
      table.columns.push_back({title, left, Table::Forms::csv_only});
  for (const Membership& m : plan.memberships(rank)) {
    std::vector<Value> row{rank.value(),   plan.families()[m.family].name(),
                           m.place.group,  m.place.rank_in_group.value(),
                           m.ranks.size(), Ranks{m.ranks}};
    if (facts)
      for (const Value& fact :
           {Value{facts->host}, Value{facts->local_rank}, Value{facts->process}})
        row.push_back(fact);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Value rank_fields(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts) {
  Value fields{
      {"rank", rank.value()}, {"coordinates", Value::Object{}}, {"groups", Value::Object{}}};
  for (const auto& [name, coordinate] : plan.coordinates(rank))
    fields["coordinates"][name] = coordinate.value();
  for (const Membership& m : plan.memberships(rank)) {
    const GroupFamily& family = plan.families()[m.family];
    Value entry{{"index", m.place.group},
                {"rank_in_group", m.place.rank_in_group.value()},
                {"size", m.ranks.size()},
                {"ranks", Ranks{m.ranks}}};
    if (family.find_all(rank).size() > 1)
      fields["groups"][family.name()].push_back(std::move(entry));
    else
      fields["groups"][family.name()] = std::move(entry);
  }
  if (facts)
    fields["live"] = {
        {"host", facts->host}, {"local_rank", facts->local_rank}, {"pid", facts->process}};
  return fields;
}

}  // namespace

namespace {

void add_heading(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts,
                 Document& document) {
  document.add(
      fmt::format("rank {} of {}   {}\n", rank.value(), plan.world_size(), plan.describe(rank)));
  if (facts)
    document.add(fmt::format("host {}, local rank {}, process {}\n", facts->host, facts->local_rank,
                             facts->process));
  document.add("\n");
}

}  // namespace

Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live) {
  detail::require_rank(plan, rank);
  const std::optional<LiveRank> facts = facts_of(rank, live);
  Document document{.schema = "rankmesh.rank/1",
                    .fields = rank_fields(plan, rank, facts),
                    .table = groups_table(plan, rank, facts)};
  add_heading(plan, rank, facts, document);
  document.text.emplace_back(TableHere{});
  return document;
}

Document ranks(const MeshPlan& plan, const std::vector<Rank>& ranks, const LiveFacts* live) {
  for (const Rank rank : ranks) detail::require_rank(plan, rank);
  Document document{.schema = "rankmesh.ranks/1", .fields = {{"ranks", Value::List{}}}};
  for (const Rank rank : ranks) {
    const std::optional<LiveRank> facts = facts_of(rank, live);
    document.fields["ranks"].push_back(rank_fields(plan, rank, facts));
    Table table = groups_table(plan, rank, facts);
    if (!document.text.empty()) document.add("\n");
    add_heading(plan, rank, facts, document);
    document.table.columns = table.columns;
    document.table.rows.insert(document.table.rows.end(), table.rows.begin(), table.rows.end());
    document.text.emplace_back(std::move(table));
  }
  return document;
}

}  // namespace rankmesh::report

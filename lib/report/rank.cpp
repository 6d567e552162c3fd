// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/rank.hpp"

#include <fmt/format.h>

#include "detail/require_rank.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/place/spread.hpp"

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
Table groups_table(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts,
                   const Machine* machine) {
  using enum Table::Align;
  Table table{.columns = {{"rank", right, Table::Forms::csv_only},
                          {"name", left},
                          {"group", right},
                          {"rank in group", right},
                          {"size", right},
                          {"ranks", left, Table::Forms::all, 80}}};
  if (machine != nullptr)
    for (const MachineLevel& level : machine->levels())
      table.columns.push_back({plural(level.name), right});
  if (facts)
    for (const char* title : {"host", "local rank", "process"})
      table.columns.push_back({title, left, Table::Forms::csv_only});
  for (const Membership& m : plan.memberships(rank)) {
    std::vector<Value> row{rank.value(),   plan.families()[m.family].name(),
                           m.place.group,  m.place.rank_in_group.value(),
                           m.ranks.size(), Ranks{m.ranks}};
    if (machine != nullptr)
      for (std::size_t l = 0; l < machine->levels().size(); ++l)
        row.emplace_back(units_of(m.ranks, *machine, l));
    if (facts)
      for (const Value& fact :
           {Value{facts->host}, Value{facts->local_rank}, Value{facts->process}})
        row.push_back(fact);
    table.rows.push_back(std::move(row));
  }
  return table;
}

// The place of the rank on the machine, for programs.
Value place_fields(const Machine& machine, Rank rank) {
  const std::int64_t slot = rank.value();
  const SlotDevice device = machine.device(slot);
  Value place{{"host", machine.host(slot)}, {"slot", machine.local_slot(slot)}};
  if (device.device >= 0) place["gpu"] = device.device;
  if (!device.nic.empty()) place["nic"] = device.nic;
  for (std::size_t l = 0; l < machine.levels().size(); ++l)
    place["units"][machine.levels()[l].name] = machine.unit_name(l, machine.unit(l, slot));
  return place;
}

// The same for people.
std::string place_text(const Machine& machine, Rank rank) {
  const std::int64_t slot = rank.value();
  const SlotDevice device = machine.device(slot);
  std::string text = fmt::format("host {}, slot {}", machine.host(slot), machine.local_slot(slot));
  if (device.device >= 0) text += fmt::format(", GPU {}", device.device);
  if (!device.nic.empty()) text += fmt::format(", nearest NIC {}", device.nic);
  for (std::size_t l = 0; l < machine.levels().size(); ++l)
    if (l != machine.node_level())
      text += fmt::format(", {} {}", machine.levels()[l].name,
                          machine.unit_name(l, machine.unit(l, slot)));
  return text + "\n";
}

Value rank_fields(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts,
                  const Machine* machine) {
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
  if (machine != nullptr) fields["place"] = place_fields(*machine, rank);
  return fields;
}

void require_rank(const MeshPlan& plan, Rank rank, const Machine* machine) {
  detail::require_rank(plan, rank);
  if (machine != nullptr && rank.value() >= machine->slot_count())
    throw UsageError{
        fmt::format("rank {} has no slot: the machine has {}", rank.value(), machine->slot_count()),
        "use a machine with a slot for each rank"};
}

void add_heading(const MeshPlan& plan, Rank rank, const std::optional<LiveRank>& facts,
                 const Machine* machine, Document& document) {
  document.add(
      fmt::format("rank {} of {}   {}\n", rank.value(), plan.world_size(), plan.describe(rank)));
  if (facts)
    document.add(fmt::format("host {}, local rank {}, process {}\n", facts->host, facts->local_rank,
                             facts->process));
  if (machine != nullptr) document.add(place_text(*machine, rank));
  document.add("\n");
}

}  // namespace

Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live, const Machine* machine) {
  require_rank(plan, rank, machine);
  const std::optional<LiveRank> facts = facts_of(rank, live);
  Document document{.schema = "rankmesh.rank/1",
                    .fields = rank_fields(plan, rank, facts, machine),
                    .table = groups_table(plan, rank, facts, machine)};
  add_heading(plan, rank, facts, machine, document);
  document.text.emplace_back(TableHere{});
  return document;
}

Document ranks(const MeshPlan& plan, const std::vector<Rank>& ranks, const LiveFacts* live,
               const Machine* machine) {
  for (const Rank rank : ranks) require_rank(plan, rank, machine);
  Document document{.schema = "rankmesh.ranks/1", .fields = {{"ranks", Value::List{}}}};
  for (const Rank rank : ranks) {
    const std::optional<LiveRank> facts = facts_of(rank, live);
    document.fields["ranks"].push_back(rank_fields(plan, rank, facts, machine));
    Table table = groups_table(plan, rank, facts, machine);
    if (!document.text.empty()) document.add("\n");
    add_heading(plan, rank, facts, machine, document);
    document.table.columns = table.columns;
    document.table.rows.insert(document.table.rows.end(), table.rows.begin(), table.rows.end());
    document.text.emplace_back(std::move(table));
  }
  return document;
}

}  // namespace rankmesh::report

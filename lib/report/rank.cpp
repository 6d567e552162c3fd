// SPDX-License-Identifier: BSD-3-Clause
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/parts.hpp"
#include "place/spread.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

void require_slot(const MeshPlan& plan, Rank rank, const Machine* machine) {
  detail::require_rank(plan, rank);
  if (machine != nullptr && rank.value() >= machine->slot_count())
    throw UsageError{
        fmt::format("rank {} has no slot: the machine has {}", rank.value(), machine->slot_count()),
        "use a machine with a slot for each rank"};
}

// In CSV every row has the rank's host, local rank and process too.
Table groups_table(const LiveFacts* live, const Machine* machine) {
  using enum Table::Forms;
  Table table{.columns = {{"rank", right, csv_only}, {"name"}}};
  table.add_columns({"group", "rank in group", "size"}, right);
  table.columns.push_back({.title = "ranks", .most = 80});
  if (machine != nullptr)
    for (const MachineLevel& level : machine->levels())
      table.add_columns({plural(level.name)}, right);
  if (live != nullptr)
    for (const char* title : {"host", "local rank", "process"})
      table.columns.push_back({title, left, csv_only});
  return table;
}

// Adds where the rank is in the running job.
void add_live(Rank rank, const LiveFacts& live, Json& fields, Document& document) {
  const std::string& host = live.hosts.at(static_cast<std::size_t>(live.placement.node(rank)));
  const std::int64_t local = live.placement.local_rank(rank);
  const std::int64_t process = live.process_ids.at(static_cast<std::size_t>(rank.value()));
  document.add(fmt::format("host {}, local rank {}, process {}\n", host, local, process));
  fields["live"] = {{"host", host}, {"local_rank", local}, {"pid", process}};
}

// Adds the place of the rank on the machine.
void add_place(Rank rank, const Machine& machine, Json& fields, Document& document) {
  const std::int64_t slot = rank.value();
  const SlotDevice device = machine.device(slot);
  Json place{{"host", machine.host(slot)}, {"slot", machine.local_slot(slot)}};
  std::string text = fmt::format("host {}, slot {}", machine.host(slot), machine.local_slot(slot));
  if (device.device >= 0) {
    place["gpu"] = device.device;
    text += fmt::format(", GPU {}", device.device);
  }
  if (!device.nic.empty()) {
    place["nic"] = device.nic;
    text += fmt::format(", nearest NIC {}", device.nic);
  }
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    const std::string& level = machine.levels()[l].name;
    const std::string unit = machine.unit_name(l, machine.unit(l, slot));
    place["units"][level] = unit;
    if (l != machine.node_level()) text += fmt::format(", {} {}", level, unit);
  }
  document.add(text + "\n");
  fields["place"] = std::move(place);
}

// Returns the fields of the rank, and adds its text and its rows.
// @param at  the place of its fields in those of the document.
Json add_rank(const MeshPlan& plan, Rank rank, const LiveFacts* live, const Machine* machine,
              Document& document, const Json::json_pointer& at = Json::json_pointer()) {
  Json fields{{"rank", rank.value()}, {"coordinates", Json::object()}, {"groups", Json::object()}};
  for (const auto& [name, coordinate] : plan.coordinates(rank))
    fields["coordinates"][name] = coordinate.value();
  if (!document.text.empty()) document.add("\n");
  document.add(
      fmt::format("rank {} of {}   {}\n", rank.value(), plan.world_size(), plan.describe(rank)));
  if (live != nullptr) add_live(rank, *live, fields, document);
  if (machine != nullptr) add_place(rank, *machine, fields, document);
  document.add("\n");
  Table table = groups_table(live, machine);
  document.table.columns = table.columns;
  for (const Membership& m : plan.memberships(rank)) {
    const GroupFamily& family = plan.families()[m.family];
    std::vector<Cell> row{rank.value(),   family.name(),
                          m.place.group,  m.place.rank_in_group.value(),
                          m.ranks.size(), Ranks{m.ranks}};
    Json units = Json::object();
    for (std::size_t l = 0; machine != nullptr && l < machine->levels().size(); ++l)
      row.emplace_back(units[machine->levels()[l].name] = units_of(m.ranks, *machine, l));
    if (live != nullptr)
      for (const char* key : {"host", "local_rank", "pid"}) row.emplace_back(fields["live"][key]);
    table.rows.push_back(std::move(row));
    Json entry{{"index", m.place.group},
               {"rank_in_group", m.place.rank_in_group.value()},
               {"size", m.ranks.size()}};
    if (machine != nullptr) entry["units"] = std::move(units);
    Json& of_family = fields["groups"][family.name()];
    Json::json_pointer place = at / "groups" / family.name();
    if (family.find_all(rank).size() > 1) {
      place /= of_family.size();
      of_family.push_back(std::move(entry));
    } else {
      of_family = std::move(entry);
    }
    document.lists.emplace_back(place / "ranks", Ranks{m.ranks});
  }
  document.text.emplace_back(table);
  std::ranges::move(table.rows, std::back_inserter(document.table.rows));
  return fields;
}

}  // namespace

Document rank(const MeshPlan& plan, Rank rank, const LiveFacts* live, const Machine* machine) {
  require_slot(plan, rank, machine);
  Document document{.schema = "rankmesh.rank/1"};
  document.fields = add_rank(plan, rank, live, machine, document);
  return document;
}

Document ranks(const MeshPlan& plan, const std::vector<Rank>& ranks, const LiveFacts* live,
               const Machine* machine) {
  for (const Rank rank : ranks) require_slot(plan, rank, machine);
  Document document{.schema = "rankmesh.ranks/1", .fields = {{"ranks", Json::array()}}};
  Json& all = document.fields["ranks"];
  for (const Rank rank : ranks)
    all.push_back(
        add_rank(plan, rank, live, machine, document, Json::json_pointer{"/ranks"} / all.size()));
  return document;
}

}  // namespace rankmesh::report

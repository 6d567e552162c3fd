// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "detail/parts.hpp"
#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {

std::string detail::split_text(const LevelSpread& spread, std::int64_t groups) {
  if (spread.split == groups && groups > 1) return "all";
  std::string text;
  std::int64_t listed = 0;
  for (const auto& [first, last] : spread.split_groups) {
    text += fmt::format("{}{}", text.empty() ? "" : ",", first);
    if (last > first) text += fmt::format("-{}", last);
    listed += last - first + 1;
  }
  return listed < spread.split ? text + ",..." : text;
}

Json detail::spread_json(const Machine& machine, const std::vector<LevelSpread>& spreads,
                         std::int64_t groups) {
  Json result;
  for (std::size_t l = 0; l < spreads.size(); ++l)
    result[machine.levels()[l].name] = {{"inside", spreads[l].inside},
                                        {"most_units", spreads[l].most_units},
                                        {"split", split_text(spreads[l], groups)}};
  return result;
}

namespace {

// The picture of these families instead of all families of the plan.
Picture picture_of(const MeshPlan& plan, const Machine* machine,
                   const std::vector<NamedFamily>& families) {
  Picture picture = detail::picture_of(plan, machine);
  picture.states.front().families = families;
  return picture;
}

Table facts_of_ranks(const LiveFacts& live) {
  Table table;
  table.add_columns({"host", "node", "local_rank", "process"});
  if (!live.devices.empty()) table.add_columns({"device"});
  for (std::int64_t r = 0; r < live.placement.world_size(); ++r) {
    const auto index = static_cast<std::size_t>(r);
    const std::int32_t node = live.placement.node(r);
    table.rows.push_back({live.hosts.at(static_cast<std::size_t>(node)), node,
                          live.placement.local_rank(r), live.process_ids.at(index)});
    if (!live.devices.empty()) table.rows.back().emplace_back(live.devices.at(index));
  }
  return table;
}

}  // namespace

Document groups(const MeshPlan& plan, std::vector<NamedFamily> families, const LiveFacts* live) {
  const auto nodes = live == nullptr ? std::nullopt : std::optional{detail::machine_of(*live)};
  Document document{.schema = "rankmesh.groups/1", .fields = {{"world_size", plan.world_size()}}};
  if (live != nullptr) document.of_ranks = facts_of_ranks(*live);
  document.picture = picture_of(plan, nodes ? &*nodes : nullptr, families);
  document.groups = std::move(families);
  return document;
}

Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                      const Machine& machine) {
  using enum Table::Align;
  Document document{.schema = "rankmesh.group_places/1",
                    .fields = {{"world_size", plan.world_size()}, {"machine", machine.describe()}}};
  document.table.columns = {{.title = "name", .level = 1}};
  document.table.add_columns({"group", "size"}, right);
  for (const MachineLevel& level : machine.levels())
    document.table.add_columns({plural(level.name)}, right);
  document.table.columns.push_back({.title = "ranks", .most = 60});
  Json& groups = document.fields["groups"];
  for (const auto& [name, family] : families) {
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const Ranks ranks{family.group(g)};
      std::vector<Cell> row{name, g, ranks.set.size()};
      Json units = Json::object();
      for (std::size_t l = 0; l < machine.levels().size(); ++l) {
        units[machine.levels()[l].name] = units_of(ranks.set, machine, l);
        row.emplace_back(units.back());
      }
      row.emplace_back(ranks);
      document.table.rows.push_back(std::move(row));
      groups[name].push_back({{"ranks", ranks}, {"units", std::move(units)}});
    }
  }
  document.add(fmt::format("{}\n\n", machine.describe()));
  document.text.emplace_back(TableHere{});
  document.picture = picture_of(plan, &machine, families);
  return document;
}

}  // namespace rankmesh::report

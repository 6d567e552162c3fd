// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/place.hpp"

#include <fmt/format.h>

#include "detail/picture.hpp"
#include "detail/place.hpp"

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

Value detail::spread_json(const Machine& machine, const std::vector<LevelSpread>& spreads,
                          std::int64_t groups) {
  Value result;
  for (std::size_t l = 0; l < spreads.size(); ++l)
    result[machine.levels()[l].name] = {{"inside", spreads[l].inside},
                                        {"most_units", spreads[l].most_units},
                                        {"split", split_text(spreads[l], groups)}};
  return result;
}

Document group_places(const MeshPlan& plan, const std::vector<NamedFamily>& families,
                      const Machine& machine) {
  using enum Table::Align;
  Document document{.schema = "rankmesh.group_places/1",
                    .fields = {{"world_size", plan.world_size()}, {"machine", machine.describe()}}};
  document.table.columns = {
      {"name", left, Table::Forms::all, SIZE_MAX, 1}, {"group", right}, {"size", right}};
  for (const MachineLevel& level : machine.levels())
    document.table.columns.push_back({plural(level.name), right});
  document.table.columns.push_back({"ranks", left, Table::Forms::all, 60});
  Value& groups = document.fields["groups"];
  for (const auto& [name, family] : families) {
    for (std::int64_t g = 0; g < family.group_count(); ++g) {
      const RankSet ranks = family.group(g);
      std::vector<Value> row{name, g, ranks.size()};
      Value units{Value::Object{}};
      for (std::size_t l = 0; l < machine.levels().size(); ++l) {
        row.emplace_back(units_of(ranks, machine, l));
        units[machine.levels()[l].name] = row.back();
      }
      row.emplace_back(Ranks{ranks});
      document.table.rows.push_back(std::move(row));
      groups[name].push_back(Value{{"ranks", Ranks{ranks}}, {"units", std::move(units)}});
    }
  }
  document.add(fmt::format("{}\n\n", machine.describe()));
  document.text.emplace_back(TableHere{});
  document.picture = detail::picture_of(plan, &machine);
  document.picture->states.front().families = families;
  return document;
}

}  // namespace rankmesh::report

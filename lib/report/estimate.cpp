// SPDX-License-Identifier: BSD-3-Clause
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/detail/text.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

// The bytes of all families together share the network of a level.
void add_bounds(const MeshPlan& plan, const Machine& machine, std::span<const FamilyVolume> volumes,
                Document& document) {
  std::vector<FamilyTraffic> traffic;
  for (const FamilyVolume& volume : volumes) traffic.push_back(volume.traffic);
  const auto bytes = bytes_per_level(plan, machine, traffic);
  const auto seconds = least_seconds_per_level(machine, bytes);
  for (std::size_t l = 0; l < seconds.size(); ++l) {
    if (!seconds[l]) continue;
    const std::string& level = machine.levels()[l].name;
    document.fields["least_seconds"][level] = *seconds[l];
    document.add(fmt::format(
        "  between {}: at least {:.3g} ms, a lower bound: all {} send {} bytes together "
        "and nothing waits\n",
        plural(level), 1e3 * *seconds[l],
        rankmesh::detail::count_text(machine.slot_count(), "rank"), bytes[l]));
  }
}

void add_volume(const MeshPlan& plan, const FamilyVolume& volume, const Machine* machine,
                Document& document) {
  const FamilyTraffic& t = volume.traffic;
  std::vector<Cell> row{t.name, to_string(t.pattern), t.bytes};
  Json& entry = document.fields["names"][t.name];
  entry = {{"pattern", to_string(t.pattern)},
           {"bytes_per_rank", t.bytes},
           {"formula", volume.formula},
           {"source", volume.source}};
  if (machine != nullptr) {
    const auto bytes = bytes_per_level(plan, *machine, {&t, 1});
    for (std::size_t l = 0; l < bytes.size(); ++l) {
      row.emplace_back(bytes[l]);
      entry["between"][machine->levels()[l].name] = bytes[l];
    }
  }
  row.insert(row.end(), {volume.formula, volume.source});
  document.table.rows.push_back(std::move(row));
}

}  // namespace

Document estimate(const MeshPlan& plan, const ModelFigures& model,
                  std::span<const FamilyVolume> volumes, const Machine* machine) {
  using enum Table::Align;
  Document document{.schema = "rankmesh.estimate/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"model", model.name},
                               {"names", Json::object()}}};
  document.table.add_columns({"name", "pattern"});
  document.table.add_columns({"bytes per rank"}, right);
  if (machine != nullptr) {
    document.fields["machine"] = machine->describe();
    for (const MachineLevel& level : machine->levels())
      document.table.add_columns({"between " + plural(level.name)}, right);
  }
  document.table.add_columns({"formula"});
  document.table.columns.push_back({"source", left, Table::Forms::csv_only});
  for (const FamilyVolume& volume : volumes) add_volume(plan, volume, machine, document);
  document.add_fields({"mesh", "model", "machine"});
  document.add("\n");
  document.text.emplace_back(TableHere{});
  document.add("\n  the volumes are bytes of one step, not times\n");
  if (machine != nullptr) add_bounds(plan, *machine, volumes, document);
  for (const FamilyVolume& volume : volumes)
    document.add(fmt::format("  {}: {}\n", volume.traffic.name, volume.source));
  return document;
}

}  // namespace rankmesh::report

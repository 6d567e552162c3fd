// SPDX-License-Identifier: BSD-3-Clause
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "detail/picture.hpp"
#include "rankmesh/place/spread.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

std::string slots_text(const std::vector<std::int64_t>& slots) {
  std::vector<Rank> ranks(slots.begin(), slots.end());
  return RankSet::of(ranks).to_string();
}

// Adds a row, and an object of JSON.
void add_arrangement(const Machine& machine, const std::string& which, const std::string& how,
                     const std::vector<std::int64_t>& bytes, Document& document) {
  std::vector<Cell>& row = document.table.rows.emplace_back();
  row.emplace_back(which);
  Json& field = document.fields[which] = {{"how", how}};
  for (std::size_t l = 0; l < bytes.size(); ++l) {
    row.emplace_back(bytes[l]);
    field["bytes"][machine.levels()[l].name] = bytes[l];
  }
  row.emplace_back(how);
}

// The families whose groups the best arrangement moves into units, or out of them.
std::string changes_text(const MeshPlan& plan, const Machine& machine,
                         std::span<const FamilyTraffic> traffic, const Arrangements& found) {
  std::string text;
  for (const FamilyTraffic& t : traffic) {
    const GroupFamily& family = plan.groups(t.name);
    const auto before = spread_of(family, machine);
    const auto after = spread_of(family, machine, found.best.slots);
    for (std::size_t l = 0; l < before.size(); ++l)
      if (before[l].inside != after[l].inside || before[l].most_units != after[l].most_units)
        text += fmt::format(
            "  {}: {} of {} groups lie in one {}, before {}; a group touches up to {}, before {}\n",
            t.name, after[l].inside, family.group_count(), machine.levels()[l].name,
            before[l].inside, after[l].most_units, before[l].most_units);
  }
  return text;
}

// Before and after. The numbers are the bytes of each level, outermost first.
Picture picture_of(const MeshPlan& mesh, const Machine& machine, std::string_view unit,
                   const Arrangements& found) {
  std::vector<std::string> levels;
  for (const MachineLevel& level : machine.levels()) levels.push_back(plural(level.name));
  Picture picture = detail::picture_of(
      mesh, &machine,
      {fmt::format("{} that leave {}: today {}, best {}",
                   unit == "bytes" ? "bytes" : "units of traffic", fmt::join(levels, ", "),
                   fmt::join(found.today.bytes, ", "), fmt::join(found.best.bytes, ", "))});
  picture.states.push_back(picture.states.front());
  picture.states[0].name = "today";
  picture.states[1].name = "best";
  picture.states[1].slots = found.best.slots;
  return picture;
}

}  // namespace

Document plan(const MeshPlan& mesh, const Machine& machine, std::span<const FamilyTraffic> traffic,
              std::string_view unit, const Arrangements& found) {
  using enum Table::Align;
  Document document{.schema = "rankmesh.plan/1",
                    .fields = {{"mesh", views_text(mesh)},
                               {"world_size", mesh.world_size()},
                               {"machine", machine.describe()},
                               {"unit", unit},
                               {"is_exact", found.is_exact}}};
  std::vector<std::string> sent;
  for (const FamilyTraffic& t : traffic) {
    document.fields["traffic"][t.name] = {{"bytes", t.bytes}, {"pattern", to_string(t.pattern)}};
    sent.push_back(fmt::format("{} {} ({})", t.name, t.bytes, to_string(t.pattern)));
  }
  document.table.add_columns({""});
  for (const MachineLevel& level : machine.levels())
    document.table.add_columns({"between " + plural(level.name)}, right);
  document.table.add_columns({"arrangement"});
  add_arrangement(machine, "best", found.best.how, found.best.bytes, document);
  if (!found.runner_up.slots.empty())
    add_arrangement(machine, "runner_up", found.runner_up.how, found.runner_up.bytes, document);
  add_arrangement(machine, "today", "rank r in slot r", found.today.bytes, document);
  add_arrangement(machine, "bound", "no arrangement sends less", found.bound, document);
  document.fields["best"]["slots"] = slots_text(found.best.slots);
  document.add_fields({"mesh", "machine"});
  document.add_line("traffic", fmt::format("what a rank sends in one step, {}: {}\n",
                                           unit == "bytes" ? "in bytes" : "as relative numbers",
                                           fmt::join(sent, ", ")));
  document.text.emplace_back(TableHere{});
  if (found.best.bytes == found.today.bytes) {
    document.add("\nno better arrangement than today's was found\n");
  } else {
    document.add(fmt::format("\n{}", changes_text(mesh, machine, traffic, found)));
    document.add("  meshinfo emit writes the files that make a launcher use it\n");
  }
  if (found.is_exact) document.add("  it reaches the bound, so no arrangement is better\n");
  document.picture = picture_of(mesh, machine, unit, found);
  return document;
}

}  // namespace rankmesh::report

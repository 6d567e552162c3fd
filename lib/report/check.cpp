// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/picture.hpp"
#include "report/reports.hpp"

namespace rankmesh::report {
namespace {

std::string note_of(const PlacementFinding& found) {
  return fmt::format("{}: {}{} [{}]", to_string(found.severity), found.what,
                     found.groups.empty() ? "" : fmt::format(" ({})", found.groups), found.rule);
}

}  // namespace

Document check(const MeshPlan& plan, const Machine& machine,
               const std::vector<PlacementFinding>& findings,
               const std::vector<std::string>& silenced) {
  Document document{.schema = "rankmesh.check/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"machine", machine.describe()}}};
  document.add_fields({"mesh", "machine"});
  document.add("\n");
  document.table.add_columns({"severity", "rule", "name", "groups", "what", "why", "fix"});
  std::vector<std::string> notes;
  for (const PlacementFinding& found : findings) {
    document.table.rows.push_back({to_string(found.severity), found.rule, found.name, found.groups,
                                   found.what, found.why, found.fix});
    document.add_bold(fmt::format("{}: {}", to_string(found.severity), found.what));
    document.add(fmt::format(" [{}]\n", found.rule));
    if (!found.groups.empty()) document.add(fmt::format("  groups: {}\n", found.groups));
    document.add(fmt::format("  why: {}\n  fix: {}\n", found.why, found.fix));
    notes.push_back(note_of(found));
  }
  document.fields["findings"] =
      document.table.objects({"rule", "severity", "name", "groups", "what", "why", "fix"});
  document.fields["silenced"] = silenced;
  document.add(findings.empty() ? "nothing was found\n"
                                : fmt::format("\n{}\n", rankmesh::detail::count_text(
                                                            findings.size(), "finding")));
  if (!silenced.empty())
    document.add(
        fmt::format("the mesh file silences these rules: {}\n", fmt::join(silenced, ", ")));
  document.picture = detail::picture_of(plan, &machine, std::move(notes));
  return document;
}

}  // namespace rankmesh::report

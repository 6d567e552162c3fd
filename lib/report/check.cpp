// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/detail/text.hpp"
#include "detail/picture.hpp"
#include "rankmesh/report/show.hpp"

namespace rankmesh::report {

Document check(const MeshPlan& plan, const Machine& machine,
               const std::vector<PlacementFinding>& findings,
               const std::vector<std::string>& silenced) {
  using enum Table::Align;
  Document document{.schema = "rankmesh.check/1",
                    .fields = {{"mesh", views_text(plan)},
                               {"world_size", plan.world_size()},
                               {"machine", machine.describe()},
                               {"findings", Value::List{}},
                               {"silenced", Value::List{}}}};
  for (const std::string& id : silenced) document.fields["silenced"].push_back(id);
  for (const char* title : {"severity", "rule", "name", "groups", "what", "why", "fix"})
    document.table.columns.push_back({title, left});
  document.add_bold("mesh");
  document.add(fmt::format("     {}\n", views_text(plan)));
  document.add_bold("machine");
  document.add(fmt::format("  {}\n\n", machine.describe()));
  for (const PlacementFinding& finding : findings) {
    const std::string severity{to_string(finding.severity)};
    document.fields["findings"].push_back({{"rule", finding.rule},
                                           {"severity", severity},
                                           {"name", finding.name},
                                           {"groups", finding.groups},
                                           {"what", finding.what},
                                           {"why", finding.why},
                                           {"fix", finding.fix}});
    document.table.rows.push_back({severity, finding.rule, finding.name, finding.groups,
                                   finding.what, finding.why, finding.fix});
    document.add_bold(fmt::format("{}: {}", severity, finding.what));
    document.add(fmt::format(" [{}]\n", finding.rule));
    if (!finding.groups.empty()) document.add(fmt::format("  groups: {}\n", finding.groups));
    document.add(fmt::format("  why: {}\n  fix: {}\n", finding.why, finding.fix));
  }
  document.add(findings.empty() ? "nothing was found\n"
                                : fmt::format("\n{}\n", rankmesh::detail::count_text(
                                                            findings.size(), "finding")));
  document.picture = detail::picture_of(plan, &machine);
  for (const PlacementFinding& finding : findings)
    document.picture->notes.push_back(fmt::format(
        "{}: {}{} [{}]", to_string(finding.severity), finding.what,
        finding.groups.empty() ? "" : fmt::format(" ({})", finding.groups), finding.rule));
  if (!silenced.empty())
    document.add(fmt::format("silenced by the mesh file: {}\n", fmt::join(silenced, ", ")));
  return document;
}

}  // namespace rankmesh::report

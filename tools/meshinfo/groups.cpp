// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

using rankmesh::report::NamedFamily;

struct GroupsOptions : ReportOptions {
  std::vector<std::string> names;
};

// The families that are asked for, each once; all if none is.
std::vector<NamedFamily> families_of(const rankmesh::MeshPlan& plan,
                                     const std::vector<std::string>& names) {
  std::vector<NamedFamily> families;
  for (const std::string& name : names)
    if (std::ranges::find(families, name, &NamedFamily::first) == families.end())
      families.emplace_back(name, plan.groups_of_product(name));
  if (names.empty())
    for (const auto& family : plan.families()) families.emplace_back(family.name(), family);
  return families;
}

// In a job, the hosts are needed, which only an open mesh knows.
int groups_on_machine(const GroupsOptions& options, Job& job) {
  if (options.output.chosen_format() == rankmesh::report::Format::long_csv)
    throw rankmesh::UsageError{"the format long has no columns for a machine",
                               "use --format csv, or leave the machine out"};
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const auto machine = options.machine.machine(open->plan.world_size(), open->live());
  print(
      rankmesh::report::group_places(open->plan, families_of(open->plan, options.names), *machine),
      options.output);
  return ok;
}

int groups(const GroupsOptions& options, Job& job) {
  if (options.machine.is_given()) return groups_on_machine(options, job);
  // The mesh is opened only for the facts about the ranks, which no other form has.
  const bool is_long = options.output.chosen_format() == rankmesh::report::Format::long_csv;
  OpenMesh open = is_long ? job.open(options.mesh) : OpenMesh{job.plan(options.mesh)};
  open.close();
  if (!job.prints()) return ok;
  const rankmesh::MeshPlan& plan = open.plan;
  print(rankmesh::report::groups(plan, families_of(plan, options.names), open.live()),
        options.output);
  return ok;
}

}  // namespace

void add_groups(CLI::App& app, Program& program) {
  auto [command, options] =
      add_command<GroupsOptions>(app, program, "groups", "the ranks of every group", groups);
  options.mesh.add_to(command);
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_format_to(command, {"long"});
  options.output.add_path_to(command, "-o,--output",
                             "write to a file, whose extension picks the format");
  add_list(command, "--dim", options.names, "NAME",
           "only this name or product (dp*tp); may be repeated");
  command.footer(
      "The format long is CSV with one row per rank and name, for pandas and R. In a job,\n"
      "its rows have the host, the node, the local rank and the process of the rank too.\n"
      "\n"
      "Examples:\n"
      "  meshinfo groups pp=2,dp=4,tp=8 --dim tp --dim 'dp*tp'\n"
      "  mpirun -n 8 meshinfo groups dp=2,tp=4 --format long -o groups.csv");
}

}  // namespace meshinfo

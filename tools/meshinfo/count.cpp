// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

int count(const ReportOptions& options, Job& job) {
  const rankmesh::MeshPlan plan = job.plan(options.mesh);
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(plan.world_size());
  print(rankmesh::report::count(plan, rankmesh::count(plan), machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_count(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ReportOptions>(
      app, program, "count", "how many groups and communicators the mesh makes", count);
  options.output.has_pictures = true;
  options.add_to(command);
}

}  // namespace meshinfo

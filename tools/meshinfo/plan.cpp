// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
#include "report/reports.hpp"
#include "traffic.hpp"

namespace meshinfo {
namespace {

struct PlanOptions : ReportOptions {
  TrafficArguments traffic;
};

int plan(const PlanOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const rankmesh::Machine machine = options.machine.require(open->plan.world_size(), open->live());
  const auto traffic = options.traffic.traffic(open->plan);
  const auto found = arrange(open->plan, machine, traffic, {.kept_in_nodes = options.traffic.kept});
  print(rankmesh::report::plan(open->plan, machine, traffic, options.traffic.unit(), found),
        options.output);
  return ok;
}

}  // namespace

void add_plan(CLI::App& app, Program& program) {
  auto [command, options] = add_command<PlanOptions>(
      app, program, "plan", "the assignment of ranks to slots with the fewest bytes between nodes",
      plan);
  options.mesh.add_to(command);
  options.machine.add_to(command);
  options.traffic.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo plan pp=2,dp=4,tp=8 --machine job.hosts --model model.toml\n"
      "  meshinfo plan dp=4,tp=8 --ranks-per-node 8 --volume tp=2e9 --volume dp=1e9");
}

}  // namespace meshinfo

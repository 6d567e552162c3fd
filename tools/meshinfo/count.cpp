// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/count.hpp"

#include <memory>

#include "machine.hpp"
#include "meshinfo.hpp"

namespace meshinfo {
namespace {

struct CountOptions {
  MeshArguments mesh;
  MachineArguments machine;
  OutputOptions output;
};

int count(const CountOptions& options, Job& job) {
  const rankmesh::MeshPlan plan = job.plan(options.mesh);
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(plan.world_size());
  print(rankmesh::report::count(plan, rankmesh::count(plan), machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_count(CLI::App& app, Program& program) {
  auto options = std::make_shared<CountOptions>();
  CLI::App* command =
      app.add_subcommand("count", "how many groups and communicators the mesh makes");
  options->mesh.add_to(*command);
  options->machine.add_to(*command);
  options->output.has_pictures = true;
  options->output.add_to(*command);
  command->callback([options, &program] { program.status = count(*options, program.job); });
}

}  // namespace meshinfo

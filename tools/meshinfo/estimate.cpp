// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/estimate.hpp"

#include <memory>

#include "machine.hpp"
#include "meshinfo.hpp"
#include "traffic.hpp"

namespace meshinfo {
namespace {

struct EstimateOptions {
  MeshArguments mesh;
  MachineArguments machine;
  OutputOptions output;
  std::string model;
};

int estimate(const EstimateOptions& options, Job& job) {
  OpenMesh open = job.open(options.mesh);
  open.close();
  if (!job.prints()) return ok;
  const rankmesh::ModelFigures model = read_model(options.model);
  const auto machine = options.machine.machine(open.plan.world_size(), open.live());
  print(rankmesh::report::estimate(open.plan, model, rankmesh::estimate(open.plan, model),
                                   machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_estimate(CLI::App& app, Program& program) {
  auto options = std::make_shared<EstimateOptions>();
  CLI::App* command =
      app.add_subcommand("estimate", "the bytes that each family sends in one training step");
  options->mesh.add_to(*command);
  options->machine.add_to(*command);
  options->output.add_to(*command);
  command->add_option("--model", options->model, "the figures of the model, a TOML file")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Examples:\n"
      "  meshinfo estimate pp=2,dp=4,tp=8 --model model.toml\n"
      "  meshinfo estimate pp=2,dp=4,tp=8 --model model.toml --ranks-per-node 8");
  command->callback([options, &program] { program.status = estimate(*options, program.job); });
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "bench.hpp"
#include "launcher.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {
namespace {

int run_tune(const BenchOptions& options, Job& job) {
  const BenchPlan plan = read_options(options);
  static_cast<void>(options.output.chosen_format());
  const rankmesh::MeshPlan mesh = job.plan(options.mesh);
  if (!is_in_job())
    throw rankmesh::UsageError{"tune measures a job, but there is none",
                               "start it in a job: mpirun -n 4 meshinfo tune tp=4"};
  for (const std::string& name : options.names) (void)mesh.index_of(name);
  // Opened first, so that a wrong path is reported before the time is spent.
  const std::unique_ptr<Output> output = open_output(options.output.path);
  const rankmesh::report::Document document = tune(mesh, options, plan);
  if (output != nullptr) print(document, options.output, *output);
  return ok;
}

}  // namespace

void add_tune(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  options->operations = {"all"};
  options->repeats = 50;
  options->output.text_extensions = {"txt", "text", "routes", "toml"};
  CLI::App* command = app.add_subcommand(
      "tune", "in a job: measure the transports and write the routes that follow");
  options->mesh.add_to(*command);
  add_size_options(*command, *options);
  command->add_option("--format", options->output.format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}));
  command->add_option("-o,--output", options->output.path,
                      "the route file to write: .routes, or .toml for the mesh with its routes");
  command->callback([options, &program] { program.status = run_tune(*options, program.job); });
}

}  // namespace meshinfo

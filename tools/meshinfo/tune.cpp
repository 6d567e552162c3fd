// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "bench.hpp"
#include "command.hpp"
#include "launcher.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {
namespace {

int run_tune(BenchOptions options, Job& job) {
  const BenchPlan plan = read_options(options);
  const std::string curves = take_picture(options.output);
  static_cast<void>(options.output.chosen_format());
  const rankmesh::MeshPlan mesh = job.plan(options.mesh);
  if (!is_in_job())
    throw rankmesh::UsageError{"tune measures a job, but there is none",
                               "start it in a job: mpirun -n 4 meshinfo tune tp=4"};
  for (const std::string& name : options.names) (void)mesh.index_of(name);
  if (options.by_size && !options.names.empty())
    throw rankmesh::UsageError{"--by-size measures groups of any name, so --dim has no meaning",
                               "leave one of them out"};
  // Opened first, so that a wrong path is reported before the time is spent.
  const std::unique_ptr<Output> picture = curves.empty() ? nullptr : open_output(curves);
  const std::unique_ptr<Output> output = open_output(options.output.path);
  const rankmesh::report::Document document = tune(mesh, options, plan);
  if (output != nullptr) print(document, options.output, *output);
  if (picture != nullptr)
    draw(document,
         {.panel = {"name", "operation"},
          .curve = "transport",
          .x = "size",
          .y = {{"time us", "time in us"}}},
         "meshinfo tune " + options.mesh.mesh, *picture);
  return ok;
}

}  // namespace

void add_tune(CLI::App& app, Program& program) {
  auto [command, options] = add_command<BenchOptions>(
      app, program, "tune", "in a job: measure the transports and write the routes that follow",
      run_tune);
  options.operations = {"all"};
  options.repeats = 50;
  options.output.text_extensions = {"txt", "text", "routes", "toml"};
  options.mesh.add_to(command);
  add_size_options(command, options);
  command.add_flag("--by-size", options.by_size,
                   "measure groups of 2, 3, 4, 8, ... ranks instead of the names of the mesh; the "
                   "rules are for groups of these sizes in any mesh");
  options.output.add_to(command, {},
                        "the route file to write: .routes, or .toml for the mesh with its "
                        "routes; .svg draws the curves, and the routes are printed");
  command.footer(
      "Examples:\n"
      "  mpirun -n 8 meshinfo tune dp=2,tp=4 -o mesh.toml\n"
      "  mpirun -n 8 meshinfo tune tp=8 --by-size -o machine.routes\n"
      "  mpirun -n 8 meshinfo tune dp=2,tp=4 --dim tp --op all_reduce -o curve.svg");
}

}  // namespace meshinfo

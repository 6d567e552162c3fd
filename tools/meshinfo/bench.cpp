// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

#include <memory>

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {
namespace {

int run_bench(const BenchOptions& options, Job& job) {
  using rankmesh::report::Format;
  const BenchPlan plan = read_options(options);
  const Format format = options.output.chosen_format();
  const bool is_host = plan.memory == rankmesh::MemoryKind::host;
  OpenMesh open = job.open(options.mesh, is_host ? "off" : options.devices);
  if (open.mesh == nullptr)
    throw rankmesh::UsageError{"bench measures a job, but there is none",
                               "start it in a job: mpirun -n 4 meshinfo bench tp=4"};
  // Opened first, so that a wrong path is reported before the time is spent.
  const std::unique_ptr<Output> output = open_output(options.output.path);
  Output* progress = format == Format::text ? output.get() : nullptr;
  const BenchResult result = bench(open, options, plan, progress);
  open.close();
  if (progress != nullptr)
    progress->finish();
  else if (output != nullptr)
    print(result.document, options.output, *output);
  return result.wrong == 0 ? ok : check_failed;
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "in a job: time and check collectives, with nccl-tests' flags and columns");
  options->mesh.add_to(*command);
  add_size_options(*command, *options);
  command->add_option("-i,--stepbytes", options->step, "go up by so many bytes, instead of -f");
  command->add_option("-d,--datatype", options->type,
                      "int8 ... uint64, half, bfloat16, float (default), double");
  command->add_option("-o,--redop", options->reduction, "sum (default), prod, min, max, avg");
  add_number(*command, "-r,--root", "root of rooted operations, a rank in group (default 0)",
             [options](std::int64_t n) { options->root = n; });
  add_number(*command, "-c,--check", "0: do not check results (default 1)",
             [options](std::int64_t n) { options->check = n; });
  command->add_option("--memory", options->memory, "host (default) or device")
      ->check(CLI::IsMember({"host", "device"}));
  command
      ->add_option("--devices", options->devices,
                   "for device memory: auto, or shared (several ranks on one)")
      ->check(CLI::IsMember({"auto", "shared"}));
  command->add_flag_callback(
      "--json", [options] { options->output.format = "json"; }, "the same as --format json");
  options->output.add_to(*command, "--output");
  command->callback([options, &program] { program.status = run_bench(*options, program.job); });
}

}  // namespace meshinfo

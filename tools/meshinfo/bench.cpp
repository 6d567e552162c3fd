// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

#include <memory>

#include "command_model.hpp"
#include "curves.hpp"

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {
namespace {

constexpr const char* bench_path_description =
    "write to a file, whose extension picks the format; .svg draws the curves, and the tables are "
    "printed too";

// -o is the reduction, as in nccl-tests, but a file has a dot in its name.
void add_reduction(CLI::App& command, BenchOptions& options) {
  const auto read = [&options](const std::string& word) {
    if (word.find('.') != std::string::npos || word == "-" || word == "wide")
      options.output.set_path(word);
    else
      options.reduction = word;
  };
  offer(*command
             .add_option_function<std::string>(
                 "-o,--redop", read,
                 "sum (default), prod, min, max or avg; or a file, as with --output")
             ->type_name("REDUCTION"),
        reduction_names());
}

int run_bench(BenchOptions options, Job& job) {
  using rankmesh::report::Format;
  const BenchPlan plan = read_options(options);
  const std::string curves = take_picture(options.output);
  const Format format = options.output.chosen_format();
  const bool is_host = plan.memory == rankmesh::MemoryKind::host;
  OpenMesh open = job.open(options.mesh, is_host ? "off" : options.devices);
  if (open.mesh == nullptr)
    throw rankmesh::UsageError{"bench measures a job, but there is none",
                               "start it in a job: mpirun -n 4 meshinfo bench tp=4"};
  // Opened first, so that a wrong path is reported before the time is spent.
  const std::unique_ptr<Output> picture = curves.empty() ? nullptr : open_output(curves);
  const std::unique_ptr<Output> output = open_output(options.output.path);
  Output* text = format == Format::text ? output.get() : nullptr;
  const BenchResult result = bench(open, options, plan, text);
  open.close();
  if (text != nullptr)
    text->finish();
  else if (output != nullptr)
    print(result.document, options.output, *output);
  if (picture != nullptr)
    draw(result.document,
         {.panel = {"name", "operation"},
          .curve = "form",
          .x = "size",
          .y = {{"time us", "time in us"}, {"busbw", "bus bandwidth in GB/s"}}},
         "meshinfo bench " + options.mesh.mesh, *picture);
  return result.wrong == 0 ? ok : check_failed;
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "in a job: time and check collectives, with nccl-tests' flags and columns");
  options->mesh.add_to(*command);
  add_size_options(*command, *options);
  command->add_option("-i,--stepbytes", options->step, "go up by so many bytes, instead of -f")
      ->type_name("SIZE");
  offer(*command
             ->add_option("-d,--datatype", options->type,
                          "int8 ... uint64, half, bfloat16, float (default), double")
             ->type_name("TYPE"),
        type_names());
  add_reduction(*command, *options);
  add_number(*command, "-r,--root", "root of rooted operations, a rank in group (default 0)",
             [options](std::int64_t n) { options->root = n; });
  add_number(*command, "-c,--check", "0: do not check results (default 1)",
             [options](std::int64_t n) { options->check = n; });
  command->add_option("--memory", options->memory, "host (default) or device")
      ->type_name("KIND")
      ->check(CLI::IsMember({"host", "device"}));
  command
      ->add_option("--devices", options->devices,
                   "for device memory: auto, or shared (several ranks on one)")
      ->type_name("USE")
      ->check(CLI::IsMember({"auto", "shared"}));
  command->add_flag_callback(
      "--json", [options] { options->output.format = "json"; }, "the same as --format json");
  options->output.add_format_to(*command);
  options->output.add_path_to(*command, "--output", bench_path_description);
  command->footer(
      "Examples:\n"
      "  mpirun -n 4 meshinfo bench dp=2,tp=2 --dim tp --op all_reduce -b 8 -e 64M\n"
      "  mpirun -n 4 meshinfo bench tp=4 --op all -o curve.svg");
  command->callback([options, &program] { program.status = run_bench(*options, program.job); });
}

}  // namespace meshinfo

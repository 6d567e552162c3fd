// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

#include <memory>

#include "command_model.hpp"

#include "command.hpp"
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
  auto [command, options] = add_command<BenchOptions>(
      app, program, "bench",
      "in a job: time and check collectives, with nccl-tests' flags and columns", run_bench);
  options.mesh.add_to(command);
  add_size_options(command, options);
  add_word(command, "-i,--stepbytes", options.step, "SIZE",
           "go up by so many bytes, instead of -f");
  offer(*add_word(command, "-d,--datatype", options.type, "TYPE",
                  "int8 ... uint64, half, bfloat16, float (default), double"),
        type_names());
  add_reduction(command, options);
  add_number(command, "-r,--root", "root of rooted operations, a rank in group (default 0)",
             options.root);
  add_number(command, "-c,--check", "0: do not check results (default 1)", options.check);
  add_word(command, "--memory", options.memory, "KIND", "host (default) or device",
           {"host", "device"});
  add_word(command, "--devices", options.devices, "USE",
           "for device memory: auto, or shared (several ranks on one)", {"auto", "shared"});
  command.add_flag_callback(
      "--json", [&to = options.output.format] { to = "json"; }, "the same as --format json");
  options.output.add_to(command, {}, bench_path_description, "--output");
  command.footer(
      "Examples:\n"
      "  mpirun -n 4 meshinfo bench dp=2,tp=2 --dim tp --op all_reduce -b 8 -e 64M\n"
      "  mpirun -n 4 meshinfo bench tp=4 --op all -o curve.svg");
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
// The commands bench and tune: their options, and how they run.
#include "bench.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "command.hpp"
#include "command_model.hpp"
#include "launcher.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"
#include "report/curves.hpp"
#include "terminal.hpp"

namespace rankmesh::meshinfo {

using detail::suggest;

namespace {

constexpr std::pair<const char*, DataType> types[] = {
    {"int8", DataType::int8},         {"uint8", DataType::uint8},
    {"int16", DataType::int16},       {"uint16", DataType::uint16},
    {"int32", DataType::int32},       {"uint32", DataType::uint32},
    {"int64", DataType::int64},       {"uint64", DataType::uint64},
    {"half", DataType::float16},      {"float16", DataType::float16},
    {"bfloat16", DataType::bfloat16}, {"float", DataType::float32},
    {"float32", DataType::float32},   {"double", DataType::float64},
    {"float64", DataType::float64}};

constexpr std::pair<const char*, ReduceOp> reductions[] = {{"sum", ReduceOp::sum},
                                                           {"prod", ReduceOp::prod},
                                                           {"min", ReduceOp::min},
                                                           {"max", ReduceOp::max},
                                                           {"avg", ReduceOp::avg}};

// Reads a size with K, M or G.
std::int64_t bytes_of(const std::string& option, const std::string& text) {
  std::string digits = text;
  std::int64_t unit = 1;
  if (!digits.empty())
    for (const auto& [letters, factor] :
         {std::pair{"Kk", 1L << 10}, {"Mm", 1L << 20}, {"Gg", 1L << 30}})
      if (std::string_view{letters}.find(digits.back()) != std::string_view::npos) unit = factor;
  if (unit != 1) digits.pop_back();
  const auto number = detail::parse_number(digits);
  if (!number || *number < 0 || *number > (1L << 50) / unit)
    throw UsageError{fmt::format("{} must be a size in bytes, got '{}'", option, text),
                     "write 8, 64K, 4M or 1G"};
  return *number * unit;
}

// Returns the operations that can be measured.
std::vector<Operation> measured_operations(MemoryKind memory) {
  std::vector<Operation> operations;
  for (std::size_t o = 0; o < operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    const OperationFacts& facts = facts_of(operation);
    const bool has_memory = memory == MemoryKind::host || !facts.nccl.empty();
    if (has_memory && (facts.awaited == Awaited::all || has_root(operation)))
      operations.push_back(operation);
  }
  return operations;
}

std::vector<std::string> names_of(const std::vector<Operation>& operations) {
  std::vector<std::string> names;
  for (const Operation operation : operations) names.emplace_back(to_string(operation));
  return names;
}

std::vector<Operation> operations_of(const BenchOptions& options, MemoryKind memory) {
  std::vector<Operation> operations = measured_operations(memory);
  const std::vector<std::string> known = names_of(operations);
  for (const std::string& name : options.operations)
    if (name != "all" && std::ranges::find(known, name) == known.end())
      throw UsageError{fmt::format("--op: there is no operation '{}' to measure", name),
                       suggest(name, known, "use all, or some of")};
  if (options.operations != std::vector<std::string>{"all"})
    std::erase_if(operations, [&](Operation operation) {
      return std::ranges::find(options.operations, to_string(operation)) ==
             options.operations.end();
    });
  return operations;
}

std::vector<std::string> names_in(const auto& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.emplace_back(name);
  return names;
}

// Returns the row of a table that has the name.
const auto* row_of(const std::string& name, const auto& table) {
  return std::ranges::find(table, name, [](const auto& row) { return std::string{row.first}; });
}

std::vector<std::int64_t> sizes_of(const BenchOptions& options) {
  const std::int64_t from = bytes_of("-b", options.from);
  const std::int64_t to = bytes_of("-e", options.to);
  const std::int64_t step = options.step.empty() ? 0 : bytes_of("-i", options.step);
  if (from > to)
    throw UsageError{fmt::format("-b {} is above -e {}", options.from, options.to), "swap them"};
  if (step == 0 && (options.factor < 2 || (from == 0 && to > 0)))
    throw UsageError{"the sizes do not increase", "use -f of 2 or more and -b of 1 or more, or -i"};
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = from; bytes <= to;
       bytes = step > 0 ? bytes + step : bytes * options.factor) {
    sizes.push_back(bytes);
    if (sizes.size() > 4096) throw UsageError{"more than 4096 sizes", "use a larger -i or -f"};
    if (from == to) break;
  }
  return sizes;
}

// Adds the options that bench and tune share.
void add_size_options(CLI::App& command, BenchOptions& options) {
  CLI::Option* operations =
      command
          .add_option("--op", options.operations,
                      fmt::format("operations, or all (default: {})", options.operations.front()))
          ->type_name("OPERATION")
          ->delimiter(',');
  std::vector<std::string> known = names_of(measured_operations(MemoryKind::host));
  known.emplace_back("all");
  offer(*operations, known);
  command.add_option("--dim", options.names, "only these names (default: all)")
      ->type_name("NAME")
      ->delimiter(',');
  add_word(command, "-b,--minbytes", options.from, "SIZE", "smallest size, K, M and G (default 8)");
  add_word(command, "-e,--maxbytes", options.to, "SIZE", "largest size (default 4M)");
  add_number(command, "-f,--stepfactor", "go up by this factor (default 2)", options.factor);
  add_number(command, "-n,--iters",
             fmt::format("calls that are timed together (default {})", options.repeats),
             options.repeats);
  add_number(command, "-w,--warmup_iters", "calls before (default 5)", options.warm_up);
}

BenchPlan read_options(const BenchOptions& options) {
  BenchPlan plan;
  plan.memory = options.memory == "host" ? MemoryKind::host : MemoryKind::device;
  plan.operations = operations_of(options, plan.memory);
  const auto* type = row_of(options.type, types);
  if (type == std::end(types))
    throw UsageError{fmt::format("-d: there is no type '{}'", options.type),
                     suggest(options.type, names_in(types), "the types are")};
  const auto* reduction = row_of(options.reduction, reductions);
  if (reduction == std::end(reductions))
    throw UsageError{fmt::format("-o: there is no reduction '{}'", options.reduction),
                     suggest(options.reduction, names_in(reductions),
                             "--op selects operations, --output a file; the reductions are")};
  plan.type = type->second;
  plan.reduction = reduction->second;
  if (options.repeats < 1 || options.warm_up < 0)
    throw UsageError{"-n must be at least 1, and -w at least 0", "leave them out for the defaults"};
  plan.sizes = sizes_of(options);
  return plan;
}

// If the path ends in .svg, returns it and lets the report go to standard output instead. Otherwise
// returns an empty path.
std::string take_picture(OutputOptions& options) {
  if (!options.path.ends_with(".svg")) return {};
  return std::exchange(options.path, {});
}

// The files of a command, on the rank that prints. They are opened before the measurements, so that
// a wrong path is reported before the time is spent.
struct Files {
  std::unique_ptr<Output> report, curves;
};

Files open_files(const BenchOptions& options, const std::string& curves) {
  return {open_output(options.output.path), curves.empty() ? nullptr : open_output(curves)};
}

void write(const Files& files, const report::Document& document, const BenchOptions& options,
           const char* command, const report::CurveColumns& columns) {
  if (files.report != nullptr) print(document, options.output, *files.report);
  if (files.curves == nullptr) return;
  files.curves->write(report::curves_svg(
      document.table, columns, fmt::format("meshinfo {} {}", command, options.mesh.mesh)));
  files.curves->finish();
}

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
        names_in(reductions));
}

int run_bench(BenchOptions options, Job& job) {
  using report::Format;
  const BenchPlan plan = read_options(options);
  const std::string curves = take_picture(options.output);
  const Format format = options.output.chosen_format();
  const bool is_host = plan.memory == MemoryKind::host;
  OpenMesh open = job.open(options.mesh, is_host ? "off" : options.devices);
  if (open.mesh == nullptr)
    throw UsageError{"bench measures a job, but there is none",
                     "start it in a job: mpirun -n 4 meshinfo bench tp=4"};
  Files files = open_files(options, curves);
  Output* text = format == Format::text ? files.report.get() : nullptr;
  const BenchResult result = bench(open, options, plan, text);
  open.close();
  if (text != nullptr) {
    text->finish();
    files.report.reset();
  }
  write(files, result.document, options, "bench",
        {.panel = {"name", "operation"},
         .curve = "form",
         .x = "size",
         .y = {{"time us", "time in us"}, {"busbw", "bus bandwidth in GB/s"}}});
  return result.wrong == 0 ? ok : check_failed;
}

int run_tune(BenchOptions options, Job& job) {
  const BenchPlan plan = read_options(options);
  const std::string curves = take_picture(options.output);
  static_cast<void>(options.output.chosen_format());
  const MeshPlan mesh = job.plan(options.mesh);
  if (!is_in_job())
    throw UsageError{"tune measures a job, but there is none",
                     "start it in a job: mpirun -n 4 meshinfo tune tp=4"};
  for (const std::string& name : options.names) (void)mesh.index_of(name);
  if (options.by_size && !options.names.empty())
    throw UsageError{"--by-size measures groups of any name, so --dim has no meaning",
                     "leave one of them out"};
  const Files files = open_files(options, curves);
  write(files, tune(mesh, options, plan), options, "tune",
        {.panel = {"name", "operation"},
         .curve = "transport",
         .x = "size",
         .y = {{"time us", "time in us"}}});
  return ok;
}

}  // namespace

std::int64_t measurements_of(const BenchPlan& plan) {
  std::int64_t count = 0;
  for (const Operation operation : plan.operations)
    count += has_data(operation) ? std::ssize(plan.sizes) : 1;
  return count;
}

std::string progress_text(const std::string& name, Operation operation, std::int64_t bytes) {
  return fmt::format("{} {}{}", name, to_string(operation),
                     has_data(operation) ? " " + bytes_text(bytes) : "");
}

bool is_measured(const GroupFamily& family, std::int64_t world_size, const BenchOptions& options) {
  const bool is_asked = options.names.empty() ||
                        std::ranges::find(options.names, family.name()) != options.names.end();
  return is_asked && family.group_size() > 1 &&
         family.coverage(world_size) != Coverage::overlapping;
}

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
        names_in(types));
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
  options.output.add_to(command, {},
                        "write to a file, whose extension picks the format; .svg draws the curves, "
                        "and the tables are printed too",
                        "--output");
  command.footer(
      "Examples:\n"
      "  mpirun -n 4 meshinfo bench dp=2,tp=2 --dim tp --op all_reduce -b 8 -e 64M\n"
      "  mpirun -n 4 meshinfo bench tp=4 --op all -o curve.svg");
}

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

}  // namespace rankmesh::meshinfo

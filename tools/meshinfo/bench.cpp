#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bench_options.hpp"
#include "rankmesh/base/error.hpp"

namespace meshinfo {

using rankmesh::UsageError;

namespace {

constexpr std::pair<const char*, rankmesh::DataType> types[] = {
    {"int8", rankmesh::DataType::int8},         {"uint8", rankmesh::DataType::uint8},
    {"int16", rankmesh::DataType::int16},       {"uint16", rankmesh::DataType::uint16},
    {"int32", rankmesh::DataType::int32},       {"uint32", rankmesh::DataType::uint32},
    {"int64", rankmesh::DataType::int64},       {"uint64", rankmesh::DataType::uint64},
    {"half", rankmesh::DataType::float16},      {"float16", rankmesh::DataType::float16},
    {"bfloat16", rankmesh::DataType::bfloat16}, {"float", rankmesh::DataType::float32},
    {"float32", rankmesh::DataType::float32},   {"double", rankmesh::DataType::float64},
    {"float64", rankmesh::DataType::float64}};

}  // namespace

std::int64_t bytes_of(const std::string& option, const std::string& text) {
  std::string digits = text;
  std::int64_t unit = 1;
  if (!digits.empty())
    for (const auto& [letters, factor] :
         {std::pair{"Kk", 1L << 10}, {"Mm", 1L << 20}, {"Gg", 1L << 30}})
      if (std::string_view{letters}.find(digits.back()) != std::string_view::npos) unit = factor;
  if (unit != 1) digits.pop_back();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size() || number < 0 ||
      number > (1L << 50) / unit)
    throw UsageError{fmt::format("{}: '{}' is no size in bytes", option, text),
                     "write 8, 64K, 4M or 1G"};
  return number * unit;
}

void BenchOptions::add_to(CLI::App& command) {
  mesh.add_to(command);
  command.add_option("--op", operations, "operations, or all (default: all_reduce)")
      ->delimiter(',');
  command.add_option("--dim", names, "only these names (default: all)")->delimiter(',');
  command.add_option("-b,--minbytes", from, "smallest size, K, M and G (default 8)");
  command.add_option("-e,--maxbytes", to, "largest size (default 4M)");
  command.add_option("-i,--stepbytes", step, "go up by so many bytes, instead of -f");
  add_number(command, "-f,--stepfactor", "go up by this factor (default 2)",
             [this](std::int64_t n) { factor = n; });
  add_number(command, "-n,--iters", "calls that are timed together (default 20)",
             [this](std::int64_t n) { repeats = n; });
  add_number(command, "-w,--warmup_iters", "calls before (default 5)",
             [this](std::int64_t n) { warm_up = n; });
  command.add_option("-d,--datatype", type,
                     "int8 ... uint64, half, bfloat16, float (default), double");
  command.add_option("-o,--redop", reduction, "sum (default), prod, min, max, avg");
  add_number(command, "-r,--root", "of rooted operations, a rank in group (default 0)",
             [this](std::int64_t n) { root = n; });
  add_number(command, "-c,--check", "0: do not check results (default 1)",
             [this](std::int64_t n) { check = n; });
  command.add_option("--memory", memory, "host (default) or device")
      ->check(CLI::IsMember({"host", "device"}));
  command
      .add_option("--devices", devices, "for device memory: auto, or shared (several ranks on one)")
      ->check(CLI::IsMember({"auto", "shared"}));
}

BenchPlan understood(const BenchOptions& options) {
  BenchPlan plan{};
  plan.memory =
      options.memory == "host" ? rankmesh::MemoryKind::host : rankmesh::MemoryKind::device;
  std::vector<std::string> known;
  for (std::size_t o = 0; !rankmesh::is_point_to_point(static_cast<rankmesh::Operation>(o)); ++o) {
    const auto operation = static_cast<rankmesh::Operation>(o);
    if (operation == rankmesh::Operation::barrier && plan.memory == rankmesh::MemoryKind::device)
      continue;
    known.emplace_back(to_string(operation));
    const bool is_asked =
        std::ranges::find(options.operations, known.back()) != options.operations.end() ||
        options.operations == std::vector<std::string>{"all"};
    if (is_asked) plan.operations.push_back(operation);
  }
  for (const std::string& name : options.operations)
    if (name != "all" && std::ranges::find(known, name) == known.end())
      throw UsageError{fmt::format("--op: there is no operation '{}' to measure", name),
                       fmt::format("use all, or some of {}", fmt::join(known, ", "))};
  const auto type =
      std::ranges::find(types, options.type, [](const auto& t) { return std::string{t.first}; });
  if (type == std::end(types))
    throw UsageError{fmt::format("-d: there is no type '{}'", options.type),
                     "use int8 ... uint64, half, bfloat16, float or double"};
  plan.type = type->second;
  bool has_reduction = false;
  for (const auto op : {rankmesh::ReduceOp::sum, rankmesh::ReduceOp::prod, rankmesh::ReduceOp::min,
                        rankmesh::ReduceOp::max, rankmesh::ReduceOp::avg})
    if (to_string(op) == options.reduction) {
      plan.reduction = op;
      has_reduction = true;
    }
  if (!has_reduction)
    throw UsageError{fmt::format("-o: there is no reduction '{}'", options.reduction),
                     "use sum, prod, min, max or avg (operations are asked for with --op)"};
  if (options.repeats < 1 || options.warm_up < 0)
    throw UsageError{"-n is at least 1, and -w at least 0", "leave them out for 20 and 5"};
  const std::int64_t from = bytes_of("-b", options.from);
  const std::int64_t to = bytes_of("-e", options.to);
  const std::int64_t step = options.step.empty() ? 0 : bytes_of("-i", options.step);
  if (from > to)
    throw UsageError{fmt::format("-b {} is above -e {}", options.from, options.to), "swap them"};
  if (step == 0 && (options.factor < 2 || (from == 0 && to > 0)))
    throw UsageError{"the sizes do not go up", "use -f of 2 or more and -b of 1 or more, or -i"};
  for (std::int64_t bytes = from; bytes <= to;
       bytes = step > 0 ? bytes + step : bytes * options.factor) {
    plan.sizes.push_back(bytes);
    if (plan.sizes.size() > 4096)
      throw UsageError{"more than 4096 sizes", "use a larger -i, or -f"};
    if (from == to) break;
  }
  return plan;
}

void add_bench(CLI::App& app, int& status) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = app.add_subcommand(
      "bench", "in a job: time and check collectives, with nccl-tests' flags and columns");
  options->add_to(*command);
  command->add_flag("--json", options->json, "JSON instead of tables");
  command->add_option("--output", options->path, "write to a file");
  command->callback([options, &status] {
    const BenchPlan plan = understood(*options);
    int result = ok;
    Request request{options->mesh, true,
                    [&](const rankmesh::MeshPlan&, const rankmesh::report::LiveFacts* live) {
                      if (live == nullptr)
                        throw UsageError{"bench measures a job, and this is none",
                                         "start it in one: mpirun -n 4 meshinfo bench tp=4"};
                      return result;
                    },
                    plan.memory == rankmesh::MemoryKind::host ? "off" : options->devices};
    request.with_mesh = [&](rankmesh::Mesh& mesh) { result = bench(mesh, *options, plan); };
    status = run(request);
  });
}

}  // namespace meshinfo

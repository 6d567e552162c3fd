// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/detail/parse.hpp"
#include "bench.hpp"
#include "command_model.hpp"
#include "rankmesh/base/detail/suggest.hpp"
#include "rankmesh/base/error.hpp"
#include "terminal.hpp"

namespace meshinfo {

using rankmesh::DataType;
using rankmesh::Operation;
using rankmesh::ReduceOp;
using rankmesh::UsageError;
using rankmesh::detail::suggest;

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
  const auto number = rankmesh::detail::parse_number(digits);
  if (!number || *number < 0 || *number > (1L << 50) / unit)
    throw UsageError{fmt::format("{} must be a size in bytes, got '{}'", option, text),
                     "write 8, 64K, 4M or 1G"};
  return *number * unit;
}

// Returns the operations that can be measured.
std::vector<Operation> measured_operations(rankmesh::MemoryKind memory) {
  std::vector<Operation> operations;
  for (std::size_t o = 0; o < rankmesh::operation_count; ++o) {
    const auto operation = static_cast<Operation>(o);
    const rankmesh::OperationFacts& facts = rankmesh::facts_of(operation);
    const bool has_memory = memory == rankmesh::MemoryKind::host || !facts.nccl.empty();
    if (has_memory && (facts.awaited == rankmesh::Awaited::all || has_root(operation)))
      operations.push_back(operation);
  }
  return operations;
}

std::vector<std::string> names_of(const std::vector<Operation>& operations) {
  std::vector<std::string> names;
  for (const Operation operation : operations) names.emplace_back(to_string(operation));
  return names;
}

std::vector<Operation> operations_of(const BenchOptions& options, rankmesh::MemoryKind memory) {
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

// Returns what the name stands for in a table.
auto value_of(const std::string& name, const auto& table, const char* what, const char* label) {
  for (const auto& [known, value] : table)
    if (known == name) return value;
  throw UsageError{fmt::format("{} '{}'", what, name), suggest(name, names_in(table), label)};
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

}  // namespace

std::vector<std::string> type_names() { return names_in(types); }

std::vector<std::string> reduction_names() { return names_in(reductions); }

void add_size_options(CLI::App& command, BenchOptions& options) {
  CLI::Option* operations =
      command
          .add_option("--op", options.operations,
                      fmt::format("operations, or all (default: {})", options.operations.front()))
          ->type_name("OPERATION")
          ->delimiter(',');
  std::vector<std::string> known = names_of(measured_operations(rankmesh::MemoryKind::host));
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
  plan.memory =
      options.memory == "host" ? rankmesh::MemoryKind::host : rankmesh::MemoryKind::device;
  plan.operations = operations_of(options, plan.memory);
  plan.type = value_of(options.type, types, "-d: there is no type", "the types are");
  plan.reduction = value_of(options.reduction, reductions, "-o: there is no reduction",
                            "--op selects operations, --output a file; the reductions are");
  if (options.repeats < 1 || options.warm_up < 0)
    throw UsageError{"-n must be at least 1, and -w at least 0", "leave them out for the defaults"};
  plan.sizes = sizes_of(options);
  return plan;
}

std::int64_t measurements_of(const BenchPlan& plan) {
  std::int64_t count = 0;
  for (const Operation operation : plan.operations)
    count += has_data(operation) ? static_cast<std::int64_t>(plan.sizes.size()) : 1;
  return count;
}

std::string progress_text(const std::string& name, Operation operation, std::int64_t bytes) {
  return fmt::format("{} {}{}", name, to_string(operation),
                     has_data(operation) ? " " + bytes_text(bytes) : "");
}

bool is_measured(const rankmesh::GroupFamily& family, std::int64_t world_size,
                 const BenchOptions& options) {
  const bool is_asked = options.names.empty() ||
                        std::ranges::find(options.names, family.name()) != options.names.end();
  return is_asked && family.group_size() > 1 &&
         family.coverage(world_size) != rankmesh::Coverage::overlapping;
}

std::string take_picture(OutputOptions& options) {
  if (!options.path.ends_with(".svg")) return {};
  return std::exchange(options.path, {});
}

void draw(const rankmesh::report::Document& document, const rankmesh::report::CurveColumns& columns,
          const std::string& title, Output& output) {
  output.write(rankmesh::report::curves_svg(document.table, columns, title));
  output.finish();
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <charconv>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "rankmesh/base/error.hpp"
#include "report/reports.hpp"
#include "traffic.hpp"

namespace meshinfo {
namespace {

struct EstimateOptions : ReportOptions {
  std::string model;
  std::vector<std::string> bandwidths, latencies;  // LEVEL=NUMBER
};

[[noreturn]] void refuse_speed(const std::string& text, const rankmesh::Machine& machine) {
  std::vector<std::string> names;
  for (const auto& level : machine.levels()) names.push_back(level.name);
  throw rankmesh::UsageError{
      fmt::format("'{}' is no speed of a level of the machine", text),
      fmt::format("write LEVEL=NUMBER; the levels are {}", fmt::join(names, ", "))};
}

// Reads LEVEL=NUMBER.
std::pair<std::size_t, double> read_speed(const std::string& text,
                                          const rankmesh::Machine& machine) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) refuse_speed(text, machine);
  for (std::size_t l = 0; l < machine.levels().size(); ++l) {
    if (machine.levels()[l].name != text.substr(0, equals)) continue;
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data() + equals + 1, end, value);
    if (error == std::errc{} && at == end) return {l, value};
  }
  refuse_speed(text, machine);
}

rankmesh::Machine with_speeds(rankmesh::Machine machine, const EstimateOptions& options) {
  for (const std::string& text : options.bandwidths) {
    const auto [level, value] = read_speed(text, machine);
    machine = machine.with_speed(level, value, machine.levels()[level].latency);
  }
  for (const std::string& text : options.latencies) {
    const auto [level, value] = read_speed(text, machine);
    machine = machine.with_speed(level, machine.levels()[level].bandwidth, value);
  }
  return machine;
}

int estimate(const EstimateOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const rankmesh::ModelFigures model = read_model(options.model);
  auto machine = options.machine.machine(open->plan.world_size(), open->live());
  if (!options.bandwidths.empty() || !options.latencies.empty())
    machine = with_speeds(options.machine.require(open->plan.world_size(), open->live()), options);
  print(rankmesh::report::estimate(open->plan, model, rankmesh::estimate(open->plan, model),
                                   machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_estimate(CLI::App& app, Program& program) {
  auto [command, options] = add_command<EstimateOptions>(
      app, program, "estimate", "the bytes that each family sends in one training step", estimate);
  options.add_to(command);
  add_word(command, "--model", options.model, "FILE", "the figures of the model, a TOML file")
      ->required();
  add_list(
      command, "--bandwidth", options.bandwidths, "LEVEL=NUMBER",
      "bytes per second that a rank can send out of its unit of a level (node, leaf, ...), for "
      "a lower bound of the time; may be repeated");
  add_list(command, "--latency", options.latencies, "LEVEL=NUMBER",
           "seconds that a message to another unit of the level takes; may be repeated");
  command.footer(
      "Examples:\n"
      "  meshinfo estimate pp=2,dp=4,tp=8 --model model.toml\n"
      "  meshinfo estimate pp=2,dp=4,tp=8 --model model.toml --ranks-per-node 8 "
      "--bandwidth node=50e9");
}

}  // namespace meshinfo

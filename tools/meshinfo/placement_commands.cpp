// SPDX-License-Identifier: BSD-3-Clause
// The commands that place a mesh on a machine: check, estimate, plan, emit and shrink.
#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "place/emit.hpp"
#include "rankmesh/base/detail/parse.hpp"
#include "report/reports.hpp"
#include "traffic.hpp"

namespace rankmesh::meshinfo {
namespace {

struct CheckOptions : ReportOptions {
  std::string fail_on = "warning";
  bool any_node_lost = false;
};

int check(const CheckOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const MeshSpec spec = options.mesh.spec();
  const Machine machine = options.machine.require(open->plan.world_size(), open->live());
  std::vector<PlacementFinding> findings;
  const auto add = [&](const char* id, auto&& rule) {
    if (id && std::ranges::find(spec.silenced(), id) != spec.silenced().end()) return;
    const auto found = rule();
    findings.insert(findings.end(), found.begin(), found.end());
  };
  if (!spec.same_as().empty())
    add("preset-mismatch", [&] { return check_claim(open->plan, spec.same_as()); });
  add(nullptr, [&] { return check_placement(open->plan, machine, spec.silenced()); });
  add("plan-sends-less", [&] { return check_alternatives(open->plan, machine); });
  if (options.any_node_lost)
    add("node-loss-fatal", [&] { return check_node_loss(open->plan, machine); });
  std::ranges::stable_sort(findings, {}, &PlacementFinding::severity);
  print(report::check(open->plan, machine, findings, spec.silenced()), options.output);
  const bool fails = std::ranges::any_of(findings, [&](const PlacementFinding& finding) {
    for (const Severity severity : {Severity::error, Severity::warning, Severity::note})
      if (to_string(severity) == options.fail_on) return finding.severity <= severity;
    return false;  // never
  });
  return fails ? check_failed : ok;
}

struct EstimateOptions : ReportOptions {
  std::string model;
  std::vector<std::string> bandwidths, latencies;  // LEVEL=NUMBER
};

// Reads LEVEL=NUMBER.
std::pair<std::size_t, double> read_speed(const std::string& text, const Machine& machine) {
  const std::size_t equals = text.find('=');
  std::vector<std::string> names;
  for (const auto& level : machine.levels()) names.push_back(level.name);
  const auto level = std::ranges::find(names, text.substr(0, equals));
  const auto value = equals == std::string::npos
                         ? std::nullopt
                         : detail::parse_number<double>(text.substr(equals + 1));
  if (level == names.end() || !value)
    throw UsageError{fmt::format("'{}' is no speed of a level of the machine", text),
                     fmt::format("write LEVEL=NUMBER; the levels are {}", fmt::join(names, ", "))};
  return {static_cast<std::size_t>(level - names.begin()), *value};
}

Machine with_speeds(Machine machine, const EstimateOptions& options) {
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
  const ModelFigures model = read_model(options.model);
  auto machine = options.machine.machine(open->plan.world_size(), open->live());
  if (!options.bandwidths.empty() || !options.latencies.empty())
    machine = with_speeds(options.machine.require(open->plan.world_size(), open->live()), options);
  print(report::estimate(open->plan, model, rankmesh::estimate(open->plan, model),
                         pointer_to(machine)),
        options.output);
  return ok;
}

struct PlanOptions : ReportOptions {
  TrafficArguments traffic;
};

int plan(const PlanOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const Machine machine = options.machine.require(open->plan.world_size(), open->live());
  const auto traffic = options.traffic.traffic(open->plan);
  const auto found = arrange(open->plan, machine, traffic, {.kept_in_nodes = options.traffic.kept});
  print(report::plan(open->plan, machine, traffic, options.traffic.unit(), found), options.output);
  return ok;
}

struct EmitOptions {
  std::string format;
  MeshArguments mesh;
  MachineArguments machine;
  TrafficArguments traffic;
  std::string path;
  bool today = false;
};

int emit(const EmitOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const EmitFormat format = emit_format(options.format).value();  // checked
  const std::int64_t world = open->plan.world_size();
  const Machine machine = options.machine.require(world, open->live());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(world));
  std::iota(slots.begin(), slots.end(), 0);
  std::vector<FamilyTraffic> traffic;
  if (!options.today) {
    traffic = options.traffic.traffic(open->plan);
    slots =
        arrange(open->plan, machine, traffic, {.kept_in_nodes = options.traffic.kept}).best.slots;
  }
  if (format == EmitFormat::mesh_order)
    slots = slots_in_mesh_order(options.mesh.spec(), traffic, slots);
  const std::string file = rankmesh::emit(format, machine, slots);
  if (names_hosts(format) && machine.levels()[machine.node_level()].names.empty())
    std::fputs(
        "meshinfo: no list of hosts is given, so the file names node0, node1 and so on\n"
        "  hint: give the hosts with --machine FILE, or write their names into the file\n",
        stderr);
  const std::string path = options.path == "-" ? "" : options.path;
  write_file(path, file);
  if (!path.empty())
    std::fputs(fmt::format("use it: {}\n", emit_usage(format, path, world)).c_str(), stdout);
  return ok;
}

constexpr std::array policies{ShrinkPolicy::drop_replica, ShrinkPolicy::spare,
                              ShrinkPolicy::compact};

struct ShrinkOptions : ReportOptions {
  std::string lost;
  std::string policy = "drop-replica";
  std::int64_t spares = 0;
};

int shrink(const ShrinkOptions& options, Job& job) {
  const MeshPlan mesh = job.plan(options.mesh);
  if (!job.prints()) return ok;
  const ShrinkPolicy policy = *std::ranges::find_if(
      policies, [&](ShrinkPolicy p) { return to_string(p) == options.policy; });
  const RankSet given = RankSet::parse(options.lost);
  if (const std::int64_t all = mesh.world_size() + std::max<std::int64_t>(options.spares, 0);
      given.size() > all)
    throw UsageError{fmt::format("--lost has {} ranks, but there are {}", given.size(), all),
                     "give the ranks that are lost"};
  const auto lost = given.to_vector();
  const auto after = rankmesh::shrink(mesh, lost, policy, options.spares);
  const auto machine = options.machine.machine(mesh.world_size());
  print(report::shrink(mesh, policy, after, pointer_to(machine)), options.output);
  return after.plan && after.fatal.empty() ? ok : check_failed;
}

}  // namespace

void add_check(CLI::App& app, Program& program) {
  auto [command, options] = add_command<CheckOptions>(
      app, program, "check", "rules for the placement of a mesh on a machine", check);
  options.add_to(command, true);
  add_word(command, "--fail-on", options.fail_on, "SEVERITY",
           "exit with status 1 if there is such a finding or a worse one (warning)",
           {"note", "warning", "error", "never"});
  command.add_flag("--any-node-lost", options.any_node_lost,
                   "is the loss of one node fatal? (rule node-loss-fatal)");
  command.footer(
      "Examples:\n"
      "  meshinfo check pp=2,dp=4,tp=8 --machine job.hosts --machine topology.conf\n"
      "  meshinfo check pp=2,dp=4,tp=8 --ranks-per-node 8 --fail-on error");
}

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

void add_plan(CLI::App& app, Program& program) {
  auto [command, options] = add_command<PlanOptions>(
      app, program, "plan", "the assignment of ranks to slots with the fewest bytes between nodes",
      plan);
  options.mesh.add_to(command);
  options.machine.add_to(command);
  options.traffic.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
  command.footer(
      "Examples:\n"
      "  meshinfo plan pp=2,dp=4,tp=8 --machine job.hosts --model model.toml\n"
      "  meshinfo plan dp=4,tp=8 --ranks-per-node 8 --volume tp=2e9 --volume dp=1e9");
}

void add_emit(CLI::App& app, Program& program) {
  auto [command, options] = add_command<EmitOptions>(
      app, program, "emit", "the file that makes a launcher use the assignment that plan finds",
      emit);
  const std::vector<std::string> names = emit_format_names();
  add_word(command, "FORMAT", options.format, "FORMAT", fmt::format("{}", fmt::join(names, ", ")),
           names)
      ->required();
  options.mesh.add_to(command);
  options.machine.add_to(command);
  options.traffic.add_to(command);
  add_word(command, "-o,--output", options.path, "FILE",
           "write to a file, and print how to use it");
  command.add_flag("--today", options.today, "rank r in slot r, instead of the best assignment");
  command.footer(
      "Examples:\n"
      "  meshinfo emit openmpi pp=2,dp=4,tp=8 --machine job.hosts -o ranks.txt\n"
      "  meshinfo emit mesh-order dp=4,tp=8 --ranks-per-node 8 --volume tp=2e9");
}

void add_shrink(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ShrinkOptions>(
      app, program, "shrink",
      "what remains of a mesh if ranks are lost; exit status 1 if it cannot continue", shrink);
  options.mesh.add_to(command);
  add_word(command, "--lost", options.lost, "RANKS", "the lost ranks, for example 5,19 or 8-15")
      ->required();
  add_word(command, "--policy", options.policy, "POLICY",
           "drop-replica (leave out replicas that lost a rank), spare (spare ranks take "
           "their places) or compact (survivors form new replicas)",
           {"drop-replica", "spare", "compact"});
  add_number(command, "--spares", "number of spare ranks, for the policy spare", options.spares);
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
  command.footer(
      "The machine is used for pictures only (-o FILE.svg, -o FILE.html).\n"
      "\n"
      "Examples:\n"
      "  meshinfo shrink pp=2,dp=4,tp=8 --lost 5,19\n"
      "  meshinfo shrink pp=2,dp=4,tp=8 --lost 8-15 --policy compact\n"
      "  meshinfo shrink dp=4,tp=8 --lost 5 --policy spare --spares 2");
}

}  // namespace rankmesh::meshinfo

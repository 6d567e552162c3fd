// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/emit.hpp"

#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.hpp"
#include "traffic.hpp"

namespace meshinfo {
namespace {

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
  const rankmesh::EmitFormat format = rankmesh::emit_format(options.format).value();  // checked
  const std::int64_t world = open->plan.world_size();
  const rankmesh::Machine machine = options.machine.require(world, open->live());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(world));
  std::iota(slots.begin(), slots.end(), 0);
  if (!options.today)
    slots = arrange(open->plan, machine, options.traffic.traffic(open->plan),
                    {.kept_in_nodes = options.traffic.kept})
                .best.slots;
  Output output{options.path};
  output.write(rankmesh::emit(format, machine, slots));
  output.finish();
  if (!options.path.empty())
    std::fputs(
        fmt::format("use it: {}\n", rankmesh::emit_usage(format, options.path, world)).c_str(),
        stdout);
  return ok;
}

}  // namespace

void add_emit(CLI::App& app, Program& program) {
  auto [command, options] = add_command<EmitOptions>(
      app, program, "emit", "the file that makes a launcher use the assignment that plan finds",
      emit);
  const std::vector<std::string> names = rankmesh::emit_format_names();
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

}  // namespace meshinfo

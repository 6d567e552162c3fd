// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/place/emit.hpp"

#include <cstdio>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "machine.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
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
  const auto format = rankmesh::emit_format(options.format);
  if (!format)
    throw rankmesh::UsageError{fmt::format("there is no format '{}' to emit", options.format),
                               fmt::format("the formats are {}", rankmesh::emit_format_names())};
  OpenMesh open = job.open(options.mesh);
  open.close();
  if (!job.prints()) return ok;
  const std::int64_t world = open.plan.world_size();
  const rankmesh::Machine machine = options.machine.require(world, open.live());
  std::vector<std::int64_t> slots(static_cast<std::size_t>(world));
  std::iota(slots.begin(), slots.end(), 0);
  if (!options.today)
    slots = arrange(open.plan, machine, options.traffic.traffic(open.plan),
                    {.kept_in_nodes = options.traffic.kept})
                .best.slots;
  Output output{options.path};
  output.write(rankmesh::emit(*format, machine, slots));
  output.finish();
  if (!options.path.empty())
    std::fputs(
        fmt::format("use it: {}\n", rankmesh::emit_usage(*format, options.path, world)).c_str(),
        stdout);
  return ok;
}

}  // namespace

void add_emit(CLI::App& app, Program& program) {
  auto options = std::make_shared<EmitOptions>();
  CLI::App* command = app.add_subcommand(
      "emit", "the file that makes a launcher use the assignment that plan finds");
  command->add_option("FORMAT", options->format, rankmesh::emit_format_names())->required();
  options->mesh.add_to(*command);
  options->machine.add_to(*command);
  options->traffic.add_to(*command);
  command->add_option("-o,--output", options->path, "write to a file, and print how to use it");
  command->add_flag("--today", options->today, "rank r in slot r, instead of the best assignment");
  command->callback([options, &program] { program.status = emit(*options, program.job); });
}

}  // namespace meshinfo

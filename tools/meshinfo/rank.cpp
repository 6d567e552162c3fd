// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/rank.hpp"

#include <memory>

#include "machine.hpp"
#include "meshinfo.hpp"

namespace meshinfo {
namespace {

struct RankOptions {
  std::int64_t rank = 0;
  MeshArguments mesh;
  MachineArguments machine;
  OutputOptions output;
};

int rank(const RankOptions& options, Job& job) {
  OpenMesh open = job.open(options.mesh);
  open.close();
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(open.plan.world_size(), open.live());
  print(rankmesh::report::rank(open.plan, options.rank, open.live(), machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_rank(CLI::App& app, Program& program) {
  auto options = std::make_shared<RankOptions>();
  CLI::App* command = app.add_subcommand("rank", "one rank: its coordinates and its groups");
  add_number(*command, "R", "the rank", [options](std::int64_t rank) {
    options->rank = rank;
  })->required();
  options->mesh.add_to(*command);
  options->machine.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &program] { program.status = rank(*options, program.job); });
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
#include "nccl_log.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct ShowOptions : ReportOptions {
  std::string devices = "auto";
};

int show(const ShowOptions& options, Job& job) {
  const NcclLog log{options.devices != "off"};  // NCCL reads its variables when it is loaded
  OpenMesh open = job.open(options.mesh, options.devices);
  gather_nccl_choices(open, log);
  open.close();
  if (!job.prints()) return ok;
  const auto machine = options.machine.machine(open.plan.world_size(), open.live());
  print(rankmesh::report::show(open.plan, open.live(), options.output.width(),
                               machine ? &*machine : nullptr),
        options.output);
  return ok;
}

}  // namespace

void add_show(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ShowOptions>(
      app, program, "show", "the mesh as a whole: the grid if it is small, and every name", show);
  options.output.has_pictures = true;
  options.add_to(command);
  add_devices(
      command, options.devices,
      "in a job: open NCCL communicators too (auto), leave devices alone (off), let several "
      "ranks share one (shared)");
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <memory>

#include "command.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

using rankmesh::ShrinkPolicy;

constexpr std::array policies{ShrinkPolicy::drop_replica, ShrinkPolicy::spare,
                              ShrinkPolicy::compact};

struct ShrinkArguments : ReportOptions {
  std::string lost;
  std::string policy = "drop-replica";
  std::int64_t spares = 0;
};

int shrink(const ShrinkArguments& options, Job& job) {
  const rankmesh::MeshPlan plan = job.plan(options.mesh);
  if (!job.prints()) return ok;
  const ShrinkPolicy policy = *std::ranges::find_if(
      policies, [&](ShrinkPolicy p) { return to_string(p) == options.policy; });
  const auto lost = rankmesh::RankSet::parse(options.lost).to_vector();
  const auto after = rankmesh::shrink(plan, lost, policy, options.spares);
  const auto machine = options.machine.machine(plan.world_size());
  print(rankmesh::report::shrink(plan, policy, after, machine ? &*machine : nullptr),
        options.output);
  return after.plan && after.fatal.empty() ? ok : check_failed;
}

}  // namespace

void add_shrink(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ShrinkArguments>(
      app, program, "shrink",
      "what remains of a mesh if ranks are lost; exit status 1 if this is fatal", shrink);
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

}  // namespace meshinfo

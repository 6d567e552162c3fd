// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>

#include "command.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

using rankmesh::PlacementFinding;
using rankmesh::Severity;

struct CheckOptions : ReportOptions {
  std::string fail_on = "warning";
  bool any_node_lost = false;
};

// The least severity that fails; nothing if findings never fail.
bool fails(const std::vector<PlacementFinding>& findings, const std::string& fail_on) {
  return std::ranges::any_of(findings, [&](const PlacementFinding& finding) {
    for (const Severity severity : {Severity::note, Severity::warning, Severity::error})
      if (to_string(severity) == fail_on) return finding.severity >= severity;
    return false;
  });
}

int check(const CheckOptions& options, Job& job) {
  const auto open = inspect(job, options.mesh);
  if (!open) return ok;
  const rankmesh::MeshSpec spec = options.mesh.spec();
  const rankmesh::Machine machine = options.machine.require(open->plan.world_size(), open->live());
  std::vector<PlacementFinding> findings =
      rankmesh::check_placement(open->plan, machine, spec.silenced());
  const auto is_silenced = [&](const char* id) {
    return std::ranges::find(spec.silenced(), id) != spec.silenced().end();
  };
  if (options.any_node_lost && !is_silenced("node-loss-fatal")) {
    auto loss = rankmesh::check_node_loss(open->plan, machine);
    findings.insert(findings.end(), loss.begin(), loss.end());
    std::ranges::stable_sort(findings, std::ranges::greater{}, &PlacementFinding::severity);
  }
  if (!spec.same_as().empty() && !is_silenced("preset-mismatch")) {
    auto claim = rankmesh::check_claim(open->plan, spec.same_as());
    findings.insert(findings.begin(), claim.begin(), claim.end());  // errors come first
  }
  print(rankmesh::report::check(open->plan, machine, findings, spec.silenced()), options.output);
  return fails(findings, options.fail_on) ? check_failed : ok;
}

}  // namespace

void add_check(CLI::App& app, Program& program) {
  auto [command, options] = add_command<CheckOptions>(
      app, program, "check", "rules for the placement of a mesh on a machine", check);
  options.output.has_pictures = true;
  options.add_to(command);
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

}  // namespace meshinfo

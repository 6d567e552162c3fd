// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>

#include "command.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct DiffOptions {
  std::string a;
  std::string b;
  std::optional<std::int64_t> world_size;
  bool offline = false;
  MachineArguments machine;
  OutputOptions output;
};

// `world_size` is used only if the mesh leaves its size open, because the two meshes may have
// different sizes.
rankmesh::MeshPlan plan_of(const std::string& mesh, std::optional<std::int64_t> world_size) {
  const auto spec = rankmesh::MeshSpec::parse(mesh);
  return spec.plan(spec.world_size() ? std::nullopt : world_size);
}

int diff(const DiffOptions& options, const Job& job) {
  if (!job.prints()) return ok;  // the job plays no part
  const rankmesh::MeshPlan a = plan_of(options.a, options.world_size);
  const rankmesh::MeshPlan b = plan_of(options.b, options.world_size);
  const rankmesh::PlanDiff difference = rankmesh::diff(a, b);
  const auto machine = options.machine.machine(std::max(a.world_size(), b.world_size()));
  print(
      rankmesh::report::diff(difference, a, b, options.a, options.b, machine ? &*machine : nullptr),
      options.output);
  return difference.is_empty() ? ok : check_failed;
}

}  // namespace

void add_diff(CLI::App& app, Program& program) {
  auto [command, options] = add_command<DiffOptions>(
      app, program, "diff", "the differences between two meshes; exit status 1 if there are any",
      diff);
  for (auto [name, to] : {std::pair{"A", &options.a}, std::pair{"B", &options.b}})
    add_word(command, name, *to, "MESH", "a mesh string, a preset or a path ending in .toml")
        ->required();
  add_number(command, "--world-size", "number of ranks, if a mesh leaves it open (auto)",
             options.world_size);
  command.add_flag("--offline", options.offline, "ignore the job that this runs in");
  options.machine.add_to(command);
  options.output.has_pictures = true;
  options.output.add_to(command);
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct ExplainOptions {
  std::int64_t rank = 0;
  MeshArguments mesh;
  OutputOptions output;
};

int explain_rank(const ExplainOptions& options, Job& job) {
  const rankmesh::MeshPlan plan = job.plan(options.mesh);
  if (job.prints()) print(rankmesh::report::explain_rank(plan, options.rank), options.output);
  return ok;
}

int explain_order(const ExplainOptions& options, Job& job) {
  const rankmesh::MeshPlan plan = job.plan(options.mesh);
  if (job.prints()) print(rankmesh::report::explain_order(plan), options.output);
  return ok;
}

void add_explain_rank(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ExplainOptions>(
      app, program, "rank", "coordinates and groups of one rank, step by step", explain_rank);
  add_number(command, "R", "the rank", options.rank)->required();
  options.mesh.add_to(command);
  options.output.add_to(command);
}

void add_explain_order(CLI::App& app, Program& program) {
  auto [command, options] = add_command<ExplainOptions>(
      app, program, "order", "which dimension varies fastest, and which ranks are neighbours",
      explain_order);
  options.mesh.add_to(command);
  options.output.add_to(command);
}

}  // namespace

void add_explain(CLI::App& app, Program& program) {
  CLI::App* command =
      app.add_subcommand("explain", "the arithmetic behind a rank, or behind the order");
  command->require_subcommand(1);
  add_explain_rank(*command, program);
  add_explain_order(*command, program);
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/report/explain.hpp"

#include <memory>

#include "meshinfo.hpp"

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
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("rank", "coordinates and groups of one rank, step by step");
  add_number(*command, "R", "the rank", [options](std::int64_t rank) {
    options->rank = rank;
  })->required();
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &program] { program.status = explain_rank(*options, program.job); });
}

void add_explain_order(CLI::App& app, Program& program) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("order", "which dimension varies fastest, and which ranks are neighbours");
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &program] { program.status = explain_order(*options, program.job); });
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

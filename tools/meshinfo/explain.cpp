#include "rankmesh/report/explain.hpp"

#include "meshinfo.hpp"

namespace meshinfo {
namespace {

struct ExplainOptions {
  std::int64_t rank = 0;
  MeshOptions mesh;
  OutputOptions output;
};

// Parses the mesh and prints what `text` or `json` makes of its plan.
template <class Text, class Json>
int explain(const ExplainOptions& options, const Text& text, const Json& json) {
  return run({options.mesh, false,
              [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts*) {
                Output output{options.output};
                const bool is_json =
                    options.output.chosen_format() == rankmesh::report::Format::json;
                output.write(is_json ? json(plan) : text(plan));
                output.finish();
                return ok;
              }});
}

void add_explain_rank(CLI::App& app, int& status) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("rank", "coordinates and groups of one rank, step by step");
  add_number(*command, "R", "the rank", [options](std::int64_t rank) {
    options->rank = rank;
  })->required();
  options->mesh.add_to(*command);
  options->output.add_to(*command, false);
  command->callback([options, &status] {
    status = explain(
        *options,
        [&](const auto& plan) { return rankmesh::report::explain_rank_text(plan, options->rank); },
        [&](const auto& plan) { return rankmesh::report::explain_rank_json(plan, options->rank); });
  });
}

void add_explain_order(CLI::App& app, int& status) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command =
      app.add_subcommand("order", "which dimension varies fastest, and who is next to whom");
  options->mesh.add_to(*command);
  options->output.add_to(*command, false);
  command->callback([options, &status] {
    status = explain(*options, rankmesh::report::explain_order_text,
                     rankmesh::report::explain_order_json);
  });
}

}  // namespace

void add_explain(CLI::App& app, int& status) {
  CLI::App* command =
      app.add_subcommand("explain", "the arithmetic behind a rank, or behind the order");
  command->require_subcommand(1);
  add_explain_rank(*command, status);
  add_explain_order(*command, status);
}

}  // namespace meshinfo

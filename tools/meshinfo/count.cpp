#include "rankmesh/report/count.hpp"

#include "meshinfo.hpp"

namespace meshinfo {

void add_count(CLI::App& app, int& status) {
  struct Options {
    MeshOptions mesh;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("count", "how many groups and communicators the mesh makes");
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &status] {
    using rankmesh::report::Format;
    status = run({options->mesh, false,
                  [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts*) {
                    const rankmesh::PlanCounts counts = rankmesh::count(plan);
                    Output output{options->output};
                    switch (options->output.chosen_format()) {
                      case Format::text:
                        output.write(
                            rankmesh::report::count_text(plan, counts, options->output.colour()));
                        break;
                      case Format::json:
                        output.write(rankmesh::report::count_json(plan, counts));
                        break;
                      case Format::csv:
                        output.write(rankmesh::report::count_csv(counts));
                        break;
                    }
                    output.finish();
                    return ok;
                  }});
  });
}

}  // namespace meshinfo

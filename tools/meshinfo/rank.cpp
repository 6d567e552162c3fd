#include "rankmesh/report/rank.hpp"

#include "meshinfo.hpp"

namespace meshinfo {

void add_rank(CLI::App& app, int& status) {
  struct Options {
    std::int64_t rank = 0;
    MeshOptions mesh;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("rank", "one rank: its coordinates and its groups");
  add_number(*command, "R", "the rank", [options](std::int64_t rank) {
    options->rank = rank;
  })->required();
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command->callback([options, &status] {
    using rankmesh::report::Format;
    status = run({options->mesh, true,
                  [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts* live) {
                    Output output{options->output};
                    switch (options->output.chosen_format()) {
                      case Format::text:
                        output.write(rankmesh::report::rank_text(plan, options->rank, live));
                        break;
                      case Format::json:
                        output.write(rankmesh::report::rank_json(plan, options->rank, live));
                        break;
                      case Format::csv:
                        output.write(rankmesh::report::rank_csv(plan, options->rank, live));
                        break;
                    }
                    output.finish();
                    return ok;
                  }});
  });
}

}  // namespace meshinfo

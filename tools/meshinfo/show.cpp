#include "rankmesh/report/show.hpp"

#include "meshinfo.hpp"

namespace meshinfo {

void add_show(CLI::App& app, int& status) {
  struct Options {
    MeshOptions mesh;
    OutputOptions output;
    std::string devices = "auto";
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("show", "the mesh as a whole: the grid where it is small, and every name");
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command
      ->add_option("--devices", options->devices,
                   "in a job: open NCCL communicators too (auto), leave devices alone (off), let "
                   "several ranks share "
                   "one (shared)")
      ->check(CLI::IsMember({"auto", "off", "shared"}));
  command->callback([options, &status] {
    using rankmesh::report::Format;
    status = run({options->mesh, true,
                  [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts* live) {
                    const rankmesh::report::ShowOptions show{options->output.colour(), live};
                    Output output{options->output};
                    switch (options->output.chosen_format()) {
                      case Format::text:
                        output.write(rankmesh::report::show_text(plan, show));
                        break;
                      case Format::json:
                        output.write(rankmesh::report::show_json(plan, show));
                        break;
                      case Format::csv:
                        output.write(rankmesh::report::show_csv(plan, show));
                        break;
                    }
                    output.finish();
                    return ok;
                  },
                  options->devices});
  });
}

}  // namespace meshinfo

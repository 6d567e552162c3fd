#include "rankmesh/report/groups.hpp"

#include <algorithm>

#include "meshinfo.hpp"

namespace meshinfo {

void add_groups(CLI::App& app, int& status) {
  struct Options {
    MeshOptions mesh;
    OutputOptions output;
    std::vector<std::string> names;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("groups", "the ranks of every group");
  options->mesh.add_to(*command);
  options->output.add_to(*command);
  command->add_option("--dim", options->names, "only this name or product (dp*tp); may be repeated")
      ->type_size(1)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->callback([options, &status] {
    status =
        run({options->mesh, false,
             [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts*) {
               std::vector<rankmesh::report::NamedFamily> families;
               for (const std::string& name :
                    options->names)  // a key stands once, however often asked for
                 if (std::ranges::find(families, name, &rankmesh::report::NamedFamily::first) ==
                     families.end())
                   families.emplace_back(name, plan.groups_of_product(name));
               if (options->names.empty())
                 for (const auto& family : plan.families())
                   families.emplace_back(family.name(), family);
               Output output{options->output};
               rankmesh::report::write_groups(plan.world_size(), families,
                                              options->output.chosen_format(),
                                              [&](std::string_view text) { output.write(text); });
               output.finish();
               return ok;
             }});
  });
}

}  // namespace meshinfo

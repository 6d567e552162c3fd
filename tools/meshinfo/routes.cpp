#include "rankmesh/report/routes.hpp"

#include <map>

#include "meshinfo.hpp"
#include "rankmesh/spec/routes.hpp"

namespace meshinfo {
namespace {

struct RoutesOptions {
  MeshOptions mesh;
  OutputOptions output;
  std::string devices = "auto";
};

int print(const RoutesOptions& options, const rankmesh::MeshPlan& plan,
          const rankmesh::RouteTable& routes, const rankmesh::report::RouteFacts* live) {
  Output output{options.output};
  if (options.output.chosen_format() == rankmesh::report::Format::json)
    output.write(rankmesh::report::routes_json(plan, routes, live));
  else
    output.write(rankmesh::report::routes_text(plan, routes, live, options.output.colour()));
  output.finish();
  return ok;
}

}  // namespace

void add_routes(CLI::App& app, int& status) {
  auto options = std::make_shared<RoutesOptions>();
  CLI::App* command =
      app.add_subcommand("routes", "which transport carries what, and by which rule");
  options->mesh.add_to(*command);
  options->output.add_to(*command, false);
  command
      ->add_option("--devices", options->devices,
                   "in a job: as meshinfo show has it (auto, off or shared)")
      ->check(CLI::IsMember({"auto", "off", "shared"}));
  command->callback([options, &status] {
    const rankmesh::MeshSpec spec = read_spec(options->mesh);
    Request request{options->mesh, true,
                    [&](const rankmesh::MeshPlan& plan, const rankmesh::report::LiveFacts* live) {
                      return live != nullptr
                                 ? ok
                                 : print(*options, plan, rankmesh::routes_of(spec, plan), nullptr);
                    },
                    options->devices};
    // Coordinators answer while they are open.
    request.with_mesh = [&](rankmesh::Mesh& mesh) {
      if (!is_printing_rank()) return;
      const rankmesh::report::RouteFacts live{
          placement_of(mesh), [&](const std::string& name, const rankmesh::RouteQuery& query) {
            return explain_route(mesh, name, query);
          }};
      const rankmesh::MeshPlan plan = spec.plan(live.placement.world_size());
      (void)print(*options, plan, rankmesh::routes_of(spec, plan), &live);
    };
    status = run(request);
  });
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
#include "rankmesh/spec/routes.hpp"
#include "report/reports.hpp"

namespace meshinfo {
namespace {

struct RoutesOptions {
  MeshArguments mesh;
  OutputOptions output;
  std::string devices = "auto";
};

int routes(const RoutesOptions& options, Job& job) {
  const rankmesh::MeshSpec spec = options.mesh.spec();
  OpenMesh open = job.open(options.mesh, options.devices);
  std::optional<rankmesh::report::Document> document;
  if (job.prints()) {
    const auto live = open.routes();  // coordinators answer as long as the mesh is open
    document = rankmesh::report::routes(open.plan, rankmesh::routes_of(spec, open.plan),
                                        live ? &*live : nullptr);
  }
  open.close();
  if (document) print(*document, options.output);
  return ok;
}

}  // namespace

void add_routes(CLI::App& app, Program& program) {
  auto [command, options] = add_command<RoutesOptions>(
      app, program, "routes", "which transport carries which operation, and by which rule", routes);
  options.mesh.add_to(command);
  options.output.add_to(command);
  add_devices(command, options.devices, "in a job: as for meshinfo show (auto, off or shared)");
}

}  // namespace meshinfo

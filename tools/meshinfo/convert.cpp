// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "meshinfo.hpp"
#include "rankmesh/place/mesh_file.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace meshinfo {
namespace {

struct ConvertOptions {
  MeshArguments mesh;
  std::string form = "toml";
  std::string path;
};

// The result is a mesh and not a report, so it has no other forms.
int convert(const ConvertOptions& options, const Job& job) {
  if (!job.prints()) return ok;  // the job plays no part
  const auto spec = options.mesh.spec();
  // A mesh that cannot be planned is refused, as by every other subcommand.
  if (options.mesh.world_size || spec.world_size())
    static_cast<void>(spec.plan(options.mesh.world_size));
  Output output{options.path == "-" ? "" : options.path};
  output.write(options.form == "toml" ? to_toml(spec) : spec.to_string() + "\n");
  output.finish();
  return ok;
}

}  // namespace

void add_convert(CLI::App& app, Program& program) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command =
      app.add_subcommand("convert", "the mesh as a file, or as a string, in its canonical form");
  options->mesh.add_to(*command);
  command->add_option("--to", options->form, "toml (the default) or string")
      ->type_name("FORM")
      ->check(CLI::IsMember({"toml", "string"}));
  command->add_option("-o,--output", options->path, "write to a file; - is standard output")
      ->type_name("FILE");
  command->callback([options, &program] { program.status = convert(*options, program.job); });
}

}  // namespace meshinfo

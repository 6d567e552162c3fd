// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "command.hpp"
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
  auto [command, options] = add_command<ConvertOptions>(
      app, program, "convert", "the mesh as a file, or as a string, in its canonical form",
      convert);
  options.mesh.add_to(command);
  add_word(command, "--to", options.form, "FORM", "toml (the default) or string",
           {"toml", "string"});
  add_word(command, "-o,--output", options.path, "FILE", "write to a file; - is standard output");
}

}  // namespace meshinfo

#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace meshinfo {

void add_convert(CLI::App& app, int& status) {
  struct Options {
    MeshOptions mesh;
    std::string form = "toml";
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("convert", "the mesh as a file, or as a string, in its canonical form");
  options->mesh.add_to(*command);
  command->add_option("--to", options->form, "toml (the default) or string")
      ->check(CLI::IsMember({"toml", "string"}));
  command->add_option("-o,--output", options->output.path, "write to a file");
  command->callback([options, &status] {
    if (!is_printing_rank()) return;  // nothing of a job is asked
    const auto spec = read_spec(options->mesh);
    // What is written is what works: a mesh that does not plan is refused as everywhere.
    if (options->mesh.world_size || spec.world_size())
      static_cast<void>(spec.plan(options->mesh.world_size));
    const std::string text = options->form == "toml" ? spec.to_toml() : spec.to_string() + "\n";
    Output output{options->output};
    output.write(text);
    output.finish();
    status = ok;
  });
}

}  // namespace meshinfo

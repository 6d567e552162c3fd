#include "rankmesh/report/diff.hpp"

#include "meshinfo.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace meshinfo {

void add_diff(CLI::App& app, int& status) {
  struct Options {
    std::string a;
    std::string b;
    std::optional<std::int64_t> world_size;
    bool offline = false;
    OutputOptions output;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "diff", "what differs between two meshes; exit status 1 where something does");
  command->add_option("A", options->a, "mesh string or path ending in .toml")->required();
  command->add_option("B", options->b, "mesh string or path ending in .toml")->required();
  add_number(*command, "--world-size", "number of ranks, where a mesh leaves it open (auto)",
             [options](std::int64_t number) { options->world_size = number; });
  command->add_flag("--offline", options->offline, "ignore the job that this runs in");
  options->output.add_to(*command, false);
  command->callback([options, &status] {
    if (!is_printing_rank()) return;  // nothing of a job is asked
    const auto plan_of = [&](const std::string& mesh) {
      const auto spec = rankmesh::MeshSpec::parse(mesh);
      // Only a mesh that leaves its size open takes it from the option: the two may differ.
      return spec.plan(spec.world_size() ? std::nullopt : options->world_size);
    };
    const rankmesh::PlanDiff diff = rankmesh::diff(plan_of(options->a), plan_of(options->b));
    Output output{options->output};
    if (options->output.chosen_format() == rankmesh::report::Format::json)
      output.write(rankmesh::report::diff_json(diff, options->a, options->b));
    else
      output.write(
          rankmesh::report::diff_text(diff, options->a, options->b, options->output.colour()));
    output.finish();
    status = diff.is_empty() ? ok : check_failed;
  });
}

}  // namespace meshinfo

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "meshinfo.hpp"
#include "rankmesh/version.hpp"

namespace meshinfo {

void add_version(CLI::App& app, int& status) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand("version", "the versions of rankmesh and of what it stands on");
  options->add_to(*command, false);
  command->callback([options, &status] {
    if (!is_printing_rank()) return;
    Output output{*options};
    const std::string mpi = mpi_version();
    if (options->chosen_format() == rankmesh::report::Format::json) {
      const nlohmann::ordered_json json{
          {"schema", "rankmesh.version/1"},
          {"rankmesh", rankmesh::version_string()},
          {"mpi", mpi.empty() ? nlohmann::ordered_json{} : nlohmann::ordered_json(mpi)}};
      output.write(json.dump(2) + "\n");
    } else {
      output.write(fmt::format("rankmesh  {}\nMPI       {}\n", rankmesh::version_string(),
                               mpi.empty() ? "not built in" : mpi));
    }
    output.finish();
    status = ok;
  });
}

}  // namespace meshinfo

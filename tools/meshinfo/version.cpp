#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "meshinfo.hpp"
#include "rankmesh/version.hpp"

namespace meshinfo {
namespace {

std::string as_text() {
  std::string text = fmt::format("{:<14}{}\n", "rankmesh", rankmesh::version_string());
  for (const Component& c : components())
    text += c.version.empty() ? fmt::format("{:<14}not found ({})\n", c.name, c.why_not)
                              : fmt::format("{:<14}{}  {}\n", c.name, c.version, c.path);
  return text;
}

std::string as_json() {
  nlohmann::ordered_json json{{"schema", "rankmesh.version/1"},
                              {"rankmesh", rankmesh::version_string()}};
  for (const Component& c : components()) {
    if (c.version.empty())
      json["libraries"][c.name] = nullptr;
    else
      json["libraries"][c.name] = {{"version", c.version}, {"path", c.path}};
  }
  return json.dump(2) + "\n";
}

}  // namespace

void add_version(CLI::App& app, int& status) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* command =
      app.add_subcommand("version", "the versions of rankmesh and of what it stands on");
  options->add_to(*command, false);
  command->callback([options, &status] {
    if (!is_printing_rank()) return;
    Output output{*options};
    if (options->chosen_format() == rankmesh::report::Format::json)
      output.write(as_json());
    else
      output.write(as_text());
    output.finish();
    status = ok;
  });
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/version.hpp"

#include <memory>

#include <fmt/format.h>

#include "meshinfo.hpp"

namespace meshinfo {
namespace {

using rankmesh::report::Document;
using rankmesh::report::Value;

Document version_report() {
  Document document{.schema = "rankmesh.version/1",
                    .fields = {{"rankmesh", rankmesh::version_string()}},
                    .table = {.columns = {{"library"}, {"version"}, {"path"}, {"why not found"}},
                              .rows = {{"rankmesh", rankmesh::version_string(), "", ""}}}};
  document.add(fmt::format("{:<14}{}\n", "rankmesh", rankmesh::version_string()));
  for (const Component& c : components()) {
    document.add(c.version.empty() ? fmt::format("{:<14}not found ({})\n", c.name, c.why_not)
                                   : fmt::format("{:<14}{}  {}\n", c.name, c.version, c.path));
    document.fields["libraries"][c.name] =
        c.version.empty() ? Value{} : Value{{"version", c.version}, {"path", c.path}};
    document.table.rows.push_back({c.name, c.version, c.path, c.why_not});
  }
  return document;
}

}  // namespace

void add_version(CLI::App& app, Program& program) {
  auto options = std::make_shared<OutputOptions>();
  CLI::App* command =
      app.add_subcommand("version", "the versions of rankmesh and of the libraries it uses");
  options->add_to(*command);
  command->callback([options, &program] {
    if (program.job.prints()) print(version_report(), *options);
  });
}

}  // namespace meshinfo

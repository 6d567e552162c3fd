// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/version.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "report/document.hpp"

namespace meshinfo {
namespace {

using rankmesh::report::Document;
using rankmesh::report::Json;

// What rankmesh was built with, and how each part is called.
std::vector<std::pair<const char*, const char*>> build_parts() {
  const rankmesh::BuildInfo info = rankmesh::build_info();
  return {{"MPI", info.mpi},
          {"compiler", info.compiler},
          {"CUDA headers", info.cuda_headers},
          {"NCCL headers", info.nccl_headers}};
}

Document version_report() {
  Document document{.schema = "rankmesh.version/1",
                    .fields = {{"rankmesh", rankmesh::version_string()}}};
  document.table.add_columns({"library", "version", "path", "why not found"});
  document.table.rows.push_back({"rankmesh", rankmesh::version_string(), "", ""});
  document.add(fmt::format("{:<14}{}\n", "rankmesh", rankmesh::version_string()));
  for (const Component& c : components()) {
    document.add(c.version.empty() ? fmt::format("{:<14}not found ({})\n", c.name, c.why_not)
                                   : fmt::format("{:<14}{}  {}\n", c.name, c.version, c.path));
    document.fields["libraries"][c.name] =
        c.version.empty() ? Json() : Json{{"version", c.version}, {"path", c.path}};
    document.table.rows.push_back({c.name, c.version, c.path, c.why_not});
  }
  document.add("built with\n");
  for (const auto& [name, version] : build_parts()) {
    const bool is_there = *version != '\0';
    document.add(fmt::format("  {:<12}  {}\n", name, is_there ? version : "none"));
    document.fields["built_with"][name] = is_there ? Json(version) : Json();
    document.table.rows.push_back({fmt::format("built with {}", name), version, "", ""});
  }
  return document;
}

int version(const OutputOptions& output, const Job& job) {
  if (job.prints()) print(version_report(), output);
  return ok;
}

}  // namespace

void add_version(CLI::App& app, Program& program) {
  auto [command, output] = add_command<OutputOptions>(
      app, program, "version", "the versions of rankmesh and of the libraries it uses", version);
  output.add_to(command);
}

}  // namespace meshinfo

// SPDX-License-Identifier: BSD-3-Clause
// What the subcommands have in common.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

#include "machine.hpp"
#include "meshinfo.hpp"
#include "rankmesh/base/error.hpp"
#include "report/document.hpp"

namespace rankmesh::meshinfo {

using report::Document;
using report::Json;

// Adds a subcommand. Its options live as long as the subcommand, and `run` gets them with the job;
// it returns the exit status.
template <class Options, class Run>
std::pair<CLI::App&, Options&> add_command(CLI::App& app, Program& program, const std::string& name,
                                           const std::string& summary, Run run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, summary);
  command->callback([options, &program, run] { program.status = run(*options, program.job); });
  return {*command, *options};
}

// What most subcommands read and write: a mesh, perhaps a machine, and a report.
struct ReportOptions {
  MeshArguments mesh{};
  MachineArguments machine{};
  OutputOptions output{};

  // Adds all of them.
  // @param can_draw  whether the report has a picture.
  void add_to(CLI::App& command, bool can_draw = false) {
    mesh.add_to(command);
    machine.add_to(command);
    output.has_pictures = can_draw;
    output.add_to(command);
  }
};

// Opens the mesh for its plan and the facts about the job, and closes it again. Nothing on the
// ranks that do not print. Collective over the job.
inline std::optional<OpenMesh> inspect(Job& job, const MeshArguments& mesh) {
  OpenMesh open = job.open(mesh);
  open.close();
  return job.prints() ? std::optional{std::move(open)} : std::nullopt;
}

// Returns the value, or null. Commands pass what a user need not describe in this form.
template <class Value>
const Value* pointer_to(const std::optional<Value>& value) {
  return value ? &*value : nullptr;
}

}  // namespace rankmesh::meshinfo

// SPDX-License-Identifier: BSD-3-Clause
// Arguments that several subcommands have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh::meshinfo {

// Adds an option or a positional argument that is a whole number in decimal digits. `to` is a
// number, or an optional one.
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& description,
                        std::function<void(std::int64_t)> store);
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& description,
                        auto& to) {
  return add_number(command, name, description,
                    std::function{[&to](std::int64_t number) { to = number; }});
}

// Adds an option that takes a word: one of the choices, if there are any.
CLI::Option* add_word(CLI::App& command, const std::string& option, std::string& to,
                      const std::string& type, const std::string& description,
                      const std::vector<std::string>& choices = {});

// Adds an option that may be repeated and takes one word each time.
void add_list(CLI::App& command, const std::string& option, std::vector<std::string>& to,
              const std::string& type, const std::string& description);

// The mesh that a subcommand reads.
struct MeshArguments {
  std::string mesh;
  std::optional<std::int64_t> world_size;
  bool offline = false;

  void add_to(CLI::App& command);
  // @throws UsageError if no mesh is given.
  void require() const;
  // Returns the mesh as described.
  [[nodiscard]] MeshSpec spec() const;
};

// Sorts words that may come in any order: one that has '=' or ends in .toml or .json is the mesh,
// and the others are `rest`. If none is the mesh, the environment variable RANKMESH gives the mesh.
// @throws UsageError if two words are meshes.
void sort_words(MeshArguments& mesh, std::vector<std::string>& rest);

// Reads a file.
// @param what  what the file is, for the error.
// @throws UsageError if it cannot be read.
std::string read_input(std::string_view what, const std::string& path, const std::string& hint);

// Adds --devices with the choices of a live mesh: auto (the default), off or shared.
void add_devices(CLI::App& command, std::string& devices, const std::string& description);

}  // namespace rankmesh::meshinfo

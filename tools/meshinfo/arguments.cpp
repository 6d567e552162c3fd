// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "rankmesh/base/detail/parse.hpp"
#include "rankmesh/base/detail/read_file.hpp"
#include "rankmesh/base/error.hpp"

namespace rankmesh::meshinfo {

// This function itself reads the digits, because CLI11 reads 010 as 8 and truncates numbers that
// exceed 64 bits.
CLI::Option* add_number(CLI::App& command, const std::string& name, const std::string& description,
                        std::function<void(std::int64_t)> store) {
  const auto read = [name, store = std::move(store)](const CLI::results_t& texts) {
    const std::string& text = texts.front();
    const auto number = detail::parse_number(text);
    if (!number)
      throw UsageError{
          fmt::format("{} must be a whole number that fits in 64 bits, got '{}'", name, text),
          name.starts_with('-') ? "write decimal digits only"
                                : "write decimal digits only, and " + name + " before the mesh"};
    store(*number);
    return true;
  };
  return command.add_option(name, read, description)->type_name("N");
}

CLI::Option* add_word(CLI::App& command, const std::string& option, std::string& to,
                      const std::string& type, const std::string& description,
                      const std::vector<std::string>& choices) {
  CLI::Option* added = command.add_option(option, to, description)->type_name(type);
  return choices.empty() ? added : added->check(CLI::IsMember(choices));
}

void add_list(CLI::App& command, const std::string& option, std::vector<std::string>& to,
              const std::string& type, const std::string& description) {
  command.add_option(option, to, description)
      ->type_name(type)
      ->type_size(1)
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void MeshArguments::add_to(CLI::App& command) {
  command
      .add_option("MESH", mesh,
                  "a mesh string, a preset (meshinfo presets lists them) or a path "
                  "ending in .toml or .json; if left out, $RANKMESH")
      ->type_name("MESH")
      ->envname("RANKMESH");
  add_number(command, "--world-size", "number of ranks, if the mesh leaves it open (auto)",
             world_size);
  command.add_flag("--offline", offline, "ignore the job that this runs in");
}

void MeshArguments::require() const {
  if (mesh.empty())
    throw UsageError{"no mesh is given",
                     "give a mesh string such as pp=2,dp=4,tp=8, or set RANKMESH"};
}

MeshSpec MeshArguments::spec() const {
  require();
  return MeshSpec::parse(mesh);
}

void sort_words(MeshArguments& mesh, std::vector<std::string>& rest) {
  std::vector<std::string> words = std::move(rest);
  if (!mesh.mesh.empty()) words.insert(words.begin(), mesh.mesh);
  rest.clear();
  mesh.mesh.clear();
  for (std::string& word : words) {
    const bool is_mesh =
        word.find('=') != std::string::npos || word.ends_with(".toml") || word.ends_with(".json");
    if (is_mesh && !mesh.mesh.empty())
      throw UsageError{fmt::format("'{}' and '{}' are both meshes", mesh.mesh, word),
                       "give one; a mesh is one word with commas, such as dp=2,tp=4"};
    if (is_mesh)
      mesh.mesh = std::move(word);
    else
      rest.push_back(std::move(word));
  }
  const char* usual = std::getenv("RANKMESH");
  if (mesh.mesh.empty() && usual != nullptr) mesh.mesh = usual;
}

std::string read_input(std::string_view what, const std::string& path, const std::string& hint) {
  auto text = detail::read_file(path);
  if (!text)
    throw UsageError{fmt::format("cannot read the {} '{}': {}", what, path, std::strerror(errno)),
                     hint};
  return *std::move(text);
}

void add_devices(CLI::App& command, std::string& devices, const std::string& description) {
  add_word(command, "--devices", devices, "USE", description, {"auto", "off", "shared"});
}

}  // namespace rankmesh::meshinfo

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/spec/routes.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "rankmesh/base/settings.hpp"

namespace rankmesh {
namespace {

// A relative path in a mesh file is relative to the folder of that file.
std::string beside(const std::string& routes, const std::string& mesh_file) {
  namespace fs = std::filesystem;
  if (!routes.starts_with('@') || mesh_file.empty()) return routes;
  const fs::path path{routes.substr(1)};
  const fs::path found = path.is_absolute() ? path : fs::path{mesh_file}.parent_path() / path;
  return fmt::format("@{}", found.string());
}

}  // namespace

RouteTable routes_of(const MeshSpec& spec, const MeshPlan& plan, std::string_view code) {
  RouteTable table = RouteTable::read(code, RouteSource::code, "MeshOptions::routes");
  if (const auto text = environment_variable("RANKMESH_ROUTES"))
    table.append(RouteTable::read(*text, RouteSource::environment, "RANKMESH_ROUTES"));
  table.append(RouteTable::read(beside(spec.routes(), spec.origin()), RouteSource::file,
                                spec.routes_origin()));
  std::vector<std::string> names;
  for (const GroupFamily& family : plan.families()) names.push_back(family.name());
  table.check_names(names);
  table.append(RouteTable::defaults());
  return table;
}

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/spec/routes.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "rankmesh/base/error.hpp"
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

RouteTable routes_of(const MeshSpec& spec, const MeshPlan& plan, std::string_view code,
                     const std::optional<std::vector<std::string>>& transports) {
  const std::vector<std::string>& known = transports ? *transports : spec.transports();
  for (const std::string& name : spec.transports())
    if (std::ranges::find(known, name) == known.end())
      throw SpecError{fmt::format("{}: the mesh needs the transport '{}', but the program has none "
                                  "of that name",
                                  spec.origin(), name),
                      "add its factory to MeshOptions::transports"};
  RouteTable table = RouteTable::read(code, RouteSource::code, "MeshOptions::routes", known);
  if (const auto text = environment_variable("RANKMESH_ROUTES"))
    table.append(RouteTable::read(*text, RouteSource::environment, "RANKMESH_ROUTES", known));
  table.append(RouteTable::read(beside(spec.routes(), spec.origin()), RouteSource::file,
                                spec.routes_origin(), known));
  std::vector<std::string> names;
  for (const GroupFamily& family : plan.families()) names.push_back(family.name());
  table.check_names(names);
  table.append(RouteTable::defaults());
  return table;
}

}  // namespace rankmesh

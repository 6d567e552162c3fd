// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/helpers/family_names.hpp"

#include <algorithm>

namespace rankmesh {

std::vector<GroupCoordinator*> FamilyNames::groups_of(Mesh& mesh) const {
  std::vector<GroupCoordinator*> groups;
  const auto& families = mesh.plan().families();
  for (const std::string& name : names_) {
    const auto family = std::ranges::find(families, name, &GroupFamily::name);
    if (family != families.end() && !family->find(mesh.rank())) continue;
    groups.push_back(&mesh[name]);
  }
  return groups;
}

}  // namespace rankmesh

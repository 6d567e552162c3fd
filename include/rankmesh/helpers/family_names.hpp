// SPDX-License-Identifier: BSD-3-Clause
// A list of the names of families or dimensions, as an argument of the helpers.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// The names of families or dimensions of a mesh. A single name converts to it, and so does a list
/// such as `{"dp", "cp"}`.
class RANKMESH_API FamilyNames {
 public:
  /// Holds no name.
  FamilyNames() = default;
  /// Holds these names.
  FamilyNames(std::initializer_list<std::string_view> names) : names_(names.begin(), names.end()) {}
  /// Holds one name.
  FamilyNames(const char* name) : names_{name} {}
  /// Holds one name.
  FamilyNames(std::string_view name) : names_{std::string{name}} {}
  /// Holds one name.
  FamilyNames(const std::string& name) : names_{name} {}
  /// Holds these names.
  FamilyNames(std::vector<std::string> names) : names_{std::move(names)} {}

  /// Returns the names, in the order in which they were given.
  [[nodiscard]] const std::vector<std::string>& list() const { return names_; }
  /// Returns this rank's groups in these families, in the order of the names. Families that have no
  /// group with this rank are left out. Local; `world` is an exception, see Mesh::operator[].
  /// @throws UnknownName if no family has one of the names; NotMember if the groups of a family
  /// overlap.
  [[nodiscard]] std::vector<GroupCoordinator*> groups_of(Mesh& mesh) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace rankmesh

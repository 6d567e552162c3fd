// SPDX-License-Identifier: BSD-3-Clause
// The difference between two plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// The way in which the family of one name differs between two plans.
enum class NameChange : std::uint8_t {
  same,     ///< the same groups in the same order
  listing,  ///< the same groups in another listing order
  order,    ///< the same ranks in each group, but the order of ranks differs in some groups
  groups,   ///< the groups differ
  only_a,
  only_b,
};

/// The difference between the families of one name.
struct NameDiff {
  std::string name;
  NameChange change = NameChange::same;
  std::int64_t groups_a = 0;  ///< 0 if the plan does not have the family
  std::int64_t groups_b = 0;
  /// The number of groups of A whose ranks, in any order, form a group of this family in B. Empty
  /// if this number was not counted.
  std::optional<std::int64_t> surviving;
  /// The number of ranks whose group of this family contains different ranks in A and in B. Empty
  /// if this number was not counted.
  std::optional<std::int64_t> changed_ranks;
  /// If `change` is groups or only_a, this lists the families of B that have exactly the same
  /// groups as this family in A. If `change` is only_b, this lists the families of A that have
  /// exactly the same groups as this family in B.
  std::vector<std::string> found_as;
};

/// The difference between two plans.
struct PlanDiff {
  std::int64_t world_a = 0;
  std::int64_t world_b = 0;
  std::vector<NameDiff> names;  ///< the families of A in order, then the families that only B has
  /// The number of ranks whose group changes in at least one family that both plans have. Empty if
  /// this number was not counted.
  std::optional<std::int64_t> changed_ranks;

  /// Returns whether the plans have the same world size and the same families.
  [[nodiscard]] RANKMESH_API bool is_empty() const;
};

/// Compares the world sizes of two plans, and compares each family with the family of the same name
/// in the other plan. The function is local and does not call MPI. Families that partition the same
/// world by strides are compared exactly by arithmetic at any size, because two such families have
/// either all groups or no groups in common. Other families are enumerated up to 4,194,304 ranks,
/// which takes 16 bytes per group and O(ranks x log ranks) time. Above this limit the counts stay
/// empty, and `change` is `groups` unless both plans describe the family in the same way.
RANKMESH_API PlanDiff diff(const MeshPlan& a, const MeshPlan& b);

}  // namespace rankmesh

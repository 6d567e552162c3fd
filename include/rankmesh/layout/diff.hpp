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

/// How the family of a name differs between two plans.
enum class NameChange : std::uint8_t {
  same,     ///< the same groups in the same order
  listing,  ///< the same groups, listed in another order
  order,    ///< the same ranks share each group, some of them in another order
  groups,   ///< other groups
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
  /// if it was not counted.
  std::optional<std::int64_t> surviving;
  /// The number of ranks that share their group of this family with other ranks than before. Empty
  /// if it was not counted.
  std::optional<std::int64_t> changed_ranks;
  /// If `change` is groups or only_a: the families of B that have exactly the groups of A. If it is
  /// only_b: the families of A that have exactly the groups of B.
  std::vector<std::string> found_as;
};

/// The difference between two plans.
struct PlanDiff {
  std::int64_t world_a = 0;
  std::int64_t world_b = 0;
  std::vector<NameDiff> names;  ///< the families of A in order, then those of B alone
  /// The number of ranks whose group changes in at least one family of both plans. Empty if it was
  /// not counted.
  std::optional<std::int64_t> changed_ranks;

  /// Returns whether the plans have the same world size and the same families.
  [[nodiscard]] RANKMESH_API bool is_empty() const;
};

/// Compares the world sizes of two plans, and each family with the family of the same name. Local,
/// no MPI. Families that partition the same world by strides are compared exactly by arithmetic, at
/// any size, since they share all groups or none. Other families are enumerated up to 4,194,304
/// ranks (16 bytes per group, O(ranks x log ranks) time). Above this limit the counts stay empty
/// and the family counts as `groups`, unless both plans describe it alike.
RANKMESH_API PlanDiff diff(const MeshPlan& a, const MeshPlan& b);

}  // namespace rankmesh

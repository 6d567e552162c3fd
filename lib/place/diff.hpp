// SPDX-License-Identifier: BSD-3-Clause
// The difference between two plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// Says how a family of plan A differs from the family of the same name in plan B.
enum class NameChange : std::uint8_t {
  same,     ///< the same groups in the same order
  listing,  ///< the same groups in a different listing order
  order,    ///< the same ranks in each group, but the order of ranks differs in some groups
  groups,   ///< the groups differ
  only_a,
  only_b,
};

/// The difference between the families that have the same name in the plans A and B.
struct NameDiff {
  std::string name;                      ///< The name of the family.
  NameChange change = NameChange::same;  ///< What has changed.
  std::int64_t groups_a = 0;             ///< number of groups in A; 0 if A does not have the family
  std::int64_t groups_b = 0;             ///< number of groups in B; 0 if B does not have the family
  /// The number of groups in A that are also groups of this family in B, possibly with a different
  /// order of ranks. The value is empty if these groups were not counted.
  std::optional<std::int64_t> surviving;
  /// The number of ranks whose group of this family contains different ranks in A than in B. The
  /// value is empty if these ranks were not counted.
  std::optional<std::int64_t> changed_ranks;
  /// The families of the other plan whose groups contain the same ranks as the groups of this
  /// family. The order of the groups and of their ranks is ignored. If `change` is `groups` or
  /// `only_a`, the list names families of B. If `change` is `only_b`, the list names families of A.
  std::vector<std::string> found_as;
};

/// The difference between two plans, A and B.
struct PlanDiff {
  std::int64_t world_a = 0;     ///< The number of ranks of the first plan.
  std::int64_t world_b = 0;     ///< The number of ranks of the second plan.
  std::vector<NameDiff> names;  ///< the families of A in order, then the families that only B has
  /// The number of ranks whose group changes in at least one family that both plans have. The value
  /// is empty if these ranks were not counted.
  std::optional<std::int64_t> changed_ranks;

  /// Returns whether the plans have the same world size and no family differs.
  [[nodiscard]] bool is_empty() const;
};

/// Compares the world sizes of two plans, and compares each family with the family of the same name
/// in the other plan. The function is local and does not call MPI. If both families are strided
/// partitions of the same world and have no table, the comparison is arithmetic. It is then exact
/// for any number of ranks, because two such families have either all groups in common or none.
///
/// Other families are enumerated if no world has more than 4,194,304 ranks. The enumeration takes
/// 16 bytes of memory per group and O(ranks x log ranks) time. For larger worlds, the optional
/// counts stay empty, and `change` is `groups` unless both plans describe the family in the same
/// way.
PlanDiff diff(const MeshPlan& a, const MeshPlan& b);

}  // namespace rankmesh

// What differs between two plans.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// How a name of one plan stands in another.
enum class NameChange : std::uint8_t {
  same,     ///< the same groups in the same order
  listing,  ///< the same groups, listed in another order
  order,    ///< the same ranks share each group, some of them in another order
  groups,   ///< other groups
  only_a,
  only_b,
};

struct NameDiff {
  std::string name;
  NameChange change = NameChange::same;
  std::int64_t groups_a = 0;  ///< 0 where the plan does not have the name
  std::int64_t groups_b = 0;
  /// Groups of A whose ranks, in whatever order, are a group of this name in B. Nothing where that
  /// was not counted.
  std::optional<std::int64_t> surviving;
  /// Ranks that share a group of this name with others than before. Nothing where that was not
  /// counted.
  std::optional<std::int64_t> changed_ranks;
  /// Where `change` is groups, only_a or only_b: the names of the other plan that have exactly
  /// these groups (of A; of B for only_b).
  std::vector<std::string> found_as;
};

struct PlanDiff {
  std::int64_t world_a = 0;
  std::int64_t world_b = 0;
  std::vector<NameDiff> names;  ///< A's in its order, then those that only B has
  /// Ranks that change groups in some name of both. Nothing where that was not counted.
  std::optional<std::int64_t> changed_ranks;

  [[nodiscard]] RANKMESH_API bool is_empty() const;
};

/// Compares worlds and names, each name's groups with those of the same name. Exact by arithmetic
/// for names that partition the same world by strides: such names share all groups or none, at any
/// size. Others are enumerated up to 4,194,304 of their ranks (16 bytes per group, O(ranks x log)
/// time); above, what was not counted is left out and the name counts as `groups` unless it is
/// written alike.
RANKMESH_API PlanDiff diff(const MeshPlan& a, const MeshPlan& b);

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The names of ranks in messages.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// Names ranks with their coordinates, for messages: `5 (dp=0,tp=1)`. This class is a value type;
/// copies share the plan.
class RANKMESH_API RankNames {
 public:
  /// Names ranks before there is a mesh: `5 (no mesh)`.
  RankNames() = default;
  /// Names the ranks of a mesh.
  explicit RankNames(std::shared_ptr<const MeshPlan> plan) : plan_{std::move(plan)} {}
  /// Names the ranks of a communicator whose rank k is `ranks.at(k)` in the mesh.
  [[nodiscard]] RankNames among(RankSet ranks) const;

  /// Returns the names of the ranks of the whole mesh.
  [[nodiscard]] RankNames of_mesh() const { return RankNames{plan_}; }
  /// Returns the number in the mesh of a rank of the communicator.
  [[nodiscard]] Rank in_mesh(Rank rank) const;

  /// Returns the rank's number in the mesh and its coordinates.
  [[nodiscard]] std::string operator()(Rank rank) const;

 private:
  std::shared_ptr<const MeshPlan> plan_;
  std::optional<RankSet> ranks_;
};

}  // namespace rankmesh

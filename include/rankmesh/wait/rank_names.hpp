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

/// Describes ranks by their numbers and coordinates in messages, for example `5 (dp=0,tp=1)`. This
/// class is a value type. Copies share the plan.
class RANKMESH_API RankNames {
 public:
  /// Describes ranks before there is a mesh, for example `5 (no mesh)`.
  RankNames() = default;
  /// Describes the ranks of a mesh. Those that are not in it are spare, as in `5 (spare)`.
  explicit RankNames(std::shared_ptr<const MeshPlan> plan) : plan_{std::move(plan)} {}
  /// Returns an object that describes the ranks of a communicator. Rank k of the communicator is
  /// rank `ranks.at(k)` of the mesh.
  [[nodiscard]] RankNames among(RankSet ranks) const;

  /// Returns an object that describes the ranks of the whole mesh.
  [[nodiscard]] RankNames of_mesh() const { return RankNames{plan_}; }
  /// Returns the plan of the mesh, or null.
  [[nodiscard]] const MeshPlan* plan() const { return plan_.get(); }
  /// Returns the number in the mesh of a rank of the communicator.
  [[nodiscard]] Rank in_mesh(Rank rank) const;

  /// Returns a text with the number of the rank in the mesh and its coordinates.
  [[nodiscard]] std::string operator()(Rank rank) const;

 private:
  std::shared_ptr<const MeshPlan> plan_;
  std::optional<RankSet> ranks_;
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Computes what remains of a mesh if ranks are lost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// How a mesh continues after a loss.
enum class ShrinkPolicy : std::uint8_t {
  drop_replica,  ///< replicas that lost a rank are left out; all others stay unchanged
  spare,         ///< spare ranks take the places of lost ranks; the mesh does not change
  compact,       ///< survivors form as many new replicas as possible
};

/// Returns the name of the policy, for example `drop-replica`.
[[nodiscard]] RANKMESH_API std::string_view to_string(ShrinkPolicy policy);

/// A lost rank, and the part of the model that it held.
struct LostRank {
  std::int64_t rank = 0;         ///< in the old mesh
  std::string coordinates{};     ///< for example `pp=0,dp=1,tp=3`
  std::string part{};            ///< the part of the model that it held, for example `pp=0,tp=3`
  std::int64_t copies_left = 0;  ///< the number of ranks left that hold the same part
};

/// What remains of a mesh.
struct Shrunk {
  std::vector<LostRank> lost{};      ///< in ascending order of the ranks
  std::vector<std::string> fatal{};  ///< the parts of which no copy is left
  /// The mesh that remains. Not set if no complete replica remains, or if a part has no copy left,
  /// unless spare ranks take the places of all lost ranks.
  std::optional<MeshPlan> plan{};
  /// The new ranks of all old ranks, followed by the new ranks of the spare ranks. The value is -1
  /// if a rank is lost or idle.
  std::vector<std::int64_t> new_rank{};
  std::vector<std::int64_t> idle{};  ///< the ranks that survive, but are not in the new mesh
  std::int64_t copies_before = 0;    ///< the number of ranks that held each part
  std::int64_t copies_after = 0;     ///< the number of ranks that hold each part in the new mesh
};

/// Returns what remains of a mesh if ranks are lost. Takes O(ranks x dimensions) time, and calls
/// no MPI.
///
/// Two ranks hold the same part of the model if they differ only in the coordinates along
/// dimensions for replicas (FamilyRole::data): dp, edp and similar names, but not fsdp. With
/// `compact` and `drop_replica`, their product becomes smaller by the same factor in each view.
/// Survivors keep their order, so the new rank of each survivor holds the part that its old rank
/// held. If the mesh permutes its ranks (`rank_order` in a mesh file), the new mesh permutes them
/// too: its ranks are the survivors in the order of their old ranks, so each process keeps its
/// place on the machine. Families keep their options.
/// @param lost  the lost ranks, each once, in any order; spare ranks, too.
/// @param spares the number of spare ranks, which are numbered after the ranks of the mesh. Used
/// only with ShrinkPolicy::spare.
/// @throws UsageError if the mesh or `spares` has more than 2^20 ranks, if a rank is repeated or
/// does not exist, if fewer spare ranks are left than ranks of the mesh are lost, or if the new
/// mesh cannot be computed. It cannot be computed if a view leaves ranks out, if views order the
/// ranks differently, if the sizes of dimensions cannot be reduced, or if the groups of a family do
/// not follow from dimensions. With `drop_replica`, the groups of families that are given as lists
/// keep the members that remain.
[[nodiscard]] RANKMESH_API Shrunk shrink(const MeshPlan& plan, std::span<const Rank> lost,
                                         ShrinkPolicy policy = ShrinkPolicy::drop_replica,
                                         std::int64_t spares = 0);

}  // namespace rankmesh

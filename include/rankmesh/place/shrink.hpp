// SPDX-License-Identifier: BSD-3-Clause
// What remains of a mesh if ranks are lost.
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
  drop_replica,  ///< the replicas that lost a rank are left out; the others stay as they are
  spare,         ///< spare ranks take the places of lost ranks; the mesh stays as it is
  compact,       ///< survivors of different replicas form new ones, as many as possible
};

/// Returns the name of the policy, for example `drop-replica`.
[[nodiscard]] RANKMESH_API std::string_view to_string(ShrinkPolicy policy);

/// A lost rank and what it held.
struct LostRank {
  std::int64_t rank = 0;
  std::string coordinates{};     ///< for example `pp=0,dp=1,tp=3`
  std::string part{};            ///< the part of the model that it held, for example `pp=0,tp=3`
  std::int64_t copies_left = 0;  ///< the number of ranks left that hold the same part
};

/// What remains of a mesh.
struct Shrunk {
  std::vector<LostRank> lost{};      ///< in ascending order of the ranks
  std::vector<std::string> fatal{};  ///< the parts of which no copy is left
  /// The mesh that remains. Not set if no complete replica remains, or if a part has no copy left,
  /// unless spare ranks take the places of all lost ones.
  std::optional<MeshPlan> plan{};
  /// The new rank of each old rank, and after them of each spare rank; -1 if it is lost or idle.
  std::vector<std::int64_t> new_rank{};
  std::vector<std::int64_t> idle{};  ///< the ranks that survive, but are not in the new mesh
  std::int64_t copies_before = 0;    ///< the number of ranks that held each part
  std::int64_t copies_after = 0;     ///< the number of ranks that hold each part in the new mesh
};

/// Returns what remains of a mesh if ranks are lost. Takes O(ranks x dimensions) time, and calls
/// no MPI.
///
/// Two ranks hold the same part of the model if they differ only in the coordinates along
/// dimensions for replicas (FamilyRole::data): dp, edp and their like, but not fsdp. With `compact`
/// and `drop_replica`, these dimensions become smaller by the same factor. Survivors keep their
/// order, so the new rank of each survivor holds the part that its old rank held. Families keep
/// their options.
/// @param lost  the lost ranks, each once, in any order.
/// @param spares  the number of spare ranks, which are numbered after those of the mesh. Only for
/// ShrinkPolicy::spare.
/// @throws UsageError if a rank is repeated or does not exist, if there are fewer spare ranks than
/// lost ones, or if the new mesh cannot be computed: a view leaves ranks out or permutes them, a
/// dimension cannot be divided, or the groups of a family do not follow from dimensions. With
/// `drop_replica`, families that are given as lists keep the groups whose members remain.
[[nodiscard]] RANKMESH_API Shrunk shrink(const MeshPlan& plan, std::span<const Rank> lost,
                                         ShrinkPolicy policy = ShrinkPolicy::drop_replica,
                                         std::int64_t spares = 0);

}  // namespace rankmesh

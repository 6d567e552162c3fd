// SPDX-License-Identifier: BSD-3-Clause
// The parts of a model that the ranks of a mesh hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh::detail {

/// Which ranks hold the same part of a model: those whose coordinates differ only along dimensions
/// for replicas.
struct Parts {
  std::vector<std::uint64_t> key;  ///< of each rank; equal keys mean equal parts
  std::vector<std::size_t> part;   ///< the number of the part of each rank, from 0
  std::size_t count = 0;           ///< of parts
};

/// @throws UsageError if a view leaves ranks out, or has too many dimensions.
Parts parts_of(const MeshPlan& plan);

/// Returns whether a dimension counts replicas.
bool counts_replicas(const std::string& dimension);

/// Returns the coordinates of a rank without those that count replicas, for example `pp=0,tp=3`.
std::string part_text(const MeshPlan& plan, Rank rank);

/// Returns the rank at each position of a mesh that permutes its ranks, or null if position p is
/// rank p.
/// @throws UsageError if the views have different orders.
std::shared_ptr<const RankTable> order_of(const MeshPlan& plan);

/// Returns the views of a mesh with the same parts, of which there are `after` instead of `before`
/// copies. Position p of these views is rank p.
/// @throws UsageError if there are no such views.
std::vector<Layout> views_with_copies(const MeshPlan& plan, const Parts& parts, std::int64_t before,
                                      std::int64_t after);

/// Returns the mesh with these views and the families of `plan`.
/// @param order  the rank at each position of this mesh; null if position p is rank p.
/// @param new_rank  the new rank of each old rank, or -1, for families that are given as lists;
/// null if there must be none.
/// @throws UsageError if this mesh cannot be computed.
MeshPlan plan_with_copies(const MeshPlan& plan, std::int64_t world, std::vector<Layout> views,
                          const std::shared_ptr<const RankTable>& order,
                          const std::vector<std::int64_t>* new_rank);

}  // namespace rankmesh::detail

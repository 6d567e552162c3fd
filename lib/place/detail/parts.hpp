// SPDX-License-Identifier: BSD-3-Clause
// The parts of a model that the ranks of a mesh hold.
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace rankmesh::detail

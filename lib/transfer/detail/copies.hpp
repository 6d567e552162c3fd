// SPDX-License-Identifier: BSD-3-Clause
// Where copies of elements must be so that they are not lost with their owners.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/transfer/placement.hpp"

namespace rankmesh::detail {

/// What each rank is lost with: if a node is lost, so are its ranks; if a replica has lost a rank,
/// its other ranks may have no place in the next mesh.
struct FailureDomains {
  std::vector<std::int64_t> replicas;  ///< the replica of each rank
  std::vector<std::int64_t> nodes;     ///< the node of each rank
};

/// Returns the distance from each rank to the one that keeps its copies, in the circle of all
/// ranks: the smallest one that leaves the fewest ranks with their copy in their own replica, and
/// among those, on their own node. Returns 0 for a single rank.
[[nodiscard]] RANKMESH_API std::int64_t distance_of_copies(const FailureDomains& domains);

/// Returns whether all ranks that have some element of a place may be lost at once.
[[nodiscard]] RANKMESH_API bool needs_copies(const TensorPlacement& place,
                                             const FailureDomains& domains);

/// Returns the same place on other ranks.
/// @param number  Returns the new number of a rank.
[[nodiscard]] RANKMESH_API TensorPlacement
renumbered(const TensorPlacement& place, const std::function<std::int64_t(std::int64_t)>& number);

}  // namespace rankmesh::detail

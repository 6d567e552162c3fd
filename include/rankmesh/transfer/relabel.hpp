// SPDX-License-Identifier: BSD-3-Clause
// Chooses the ranks of a new mesh so that as little as possible moves.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/machine/machine.hpp"
#include "rankmesh/transfer/placement.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh {

/// The ranks of a new mesh.
struct RANKMESH_API Relabelling {
  std::map<Rank, Rank> rank_of;   ///< The new rank for each rank of the places `to`.
  std::int64_t moved_bytes = 0;   ///< What moves to the new ranks.
  std::int64_t moved_before = 0;  ///< What moves to the ranks of the places `to`.
  std::int64_t cost = 0;          ///< The moved bytes times their weights.
  std::int64_t least_cost = 0;    ///< No choice of the ranks costs less.
  std::string_view how;           ///< See Assignment::how.
  /// Returns a place of the new mesh on the new ranks.
  /// @throws UsageError if the place has a rank that is not in `rank_of`.
  [[nodiscard]] TensorPlacement apply(const TensorPlacement& to) const;
  /// Returns the tensors with their new places. All else about them is unchanged.
  [[nodiscard]] std::vector<TensorTransfer> apply(std::span<const TensorTransfer> tensors) const;
};

/// What moved bytes cost.
struct RelabelOptions {
  const Machine* machine = nullptr;  ///< If not null, rank r is in slot r of this machine.
  std::int64_t node_weight = 1;      ///< The cost of a byte that comes from the same node.
  /// The cost of a byte that comes from another node. At least `node_weight`. Without a machine,
  /// all bytes cost `node_weight`.
  std::int64_t network_weight = 10;
};

/// Permutes the ranks of a new mesh so that the cost of the bytes that have to move to them is as
/// small as possible, as assign_ranks() finds it (docs/redistribution.md has an example). Bytes
/// have the type of the messages; a rank that holds a partial sum counts as a holder of the
/// element. Local; the result depends only on the arguments, so all ranks get the same one. The
/// program must create the new mesh on these ranks, for example with Mesh's option `reorder` or in
/// a mesh file.
/// @throws UsageError if the shapes of a tensor differ, if a weight is negative or the weights are
/// in the wrong order, if the machine has fewer slots than there are ranks, or if there are more
/// than 2^26 pairs of ranks of which one holds what the other one needs.
[[nodiscard]] RANKMESH_API Relabelling relabel(std::span<const TensorTransfer> tensors,
                                               const RelabelOptions& options = {});

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The numbers of groups and communicators that a plan creates.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// The numbers of groups, communicators and creation steps of a plan. If a sum overflows 64 bits,
/// the largest 64-bit number takes its place.
struct PlanCounts {
  /// The least and the greatest value of a number that differs between ranks.
  struct PerRank {
    std::int64_t least = 0;
    std::int64_t most = 0;
    /// False if the world is too large to visit every rank. Both values are then the value of rank
    /// 0.
    bool covers_all = true;
    friend bool operator==(const PerRank&, const PerRank&) = default;
  };

  std::int64_t world_size = 0;
  std::int64_t names = 0;          ///< number of families
  std::int64_t groups = 0;         ///< number of groups of all families
  std::int64_t groups_of_one = 0;  ///< groups of one rank
  /// The number of groups that differ in their ranks or in the order of their ranks. Groups of one
  /// rank are included.
  std::int64_t distinct_groups = 0;
  /// The number of groups of overlapping families. These groups are printed but never executed.
  std::int64_t overlapping_groups = 0;
  /// The number of communicators. Each distinct group of two or more ranks that is executed has one
  /// communicator, and one more for each key in GroupOptions::duplicates.
  std::int64_t communicators = 0;
  /// The number of collective MPI calls that create communicators. Every rank takes part in them.
  std::int64_t splits = 0;
  /// The number of NCCL unique IDs on all ranks together. A communicator needs one or more IDs, or
  /// none if it is split from another communicator.
  std::int64_t unique_ids = 0;
  PerRank groups_per_rank;
  PerRank communicators_per_rank;

  /// Returns the number of broadcasts of unique IDs. Each ID is broadcast once, in its group.
  [[nodiscard]] std::int64_t broadcasts() const { return unique_ids; }
  /// Returns the number of groups that have the same ranks in the same order as an earlier group.
  [[nodiscard]] std::int64_t repeated_groups() const { return groups - distinct_groups; }
  /// Returns the number of communicators that each rank would create if every group were created on
  /// every rank, as `torch.distributed.new_group` requires.
  [[nodiscard]] std::int64_t naive_creations_per_rank() const { return groups; }
  /// Returns the sum of naive_creations_per_rank() over all ranks.
  [[nodiscard]] RANKMESH_API std::int64_t naive_creations() const;

  friend bool operator==(const PlanCounts&, const PlanCounts&) = default;
};

/// Counts the groups and communicators of a plan. The result is exact. The function is local and
/// does not call MPI. The cost is O(families^2 x dimensions) for families that partition the world
/// by strides. Other families (lists, partial families and overlapping families) are enumerated
/// where arithmetic does not suffice. For the figures per rank, up to 16,777,216 ranks are
/// enumerated, which takes 4 bytes per rank of the world. Above this limit the figures per rank are
/// the figures of rank 0.
RANKMESH_API PlanCounts count(const MeshPlan& plan);

}  // namespace rankmesh

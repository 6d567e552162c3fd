// SPDX-License-Identifier: BSD-3-Clause
// The numbers of groups and communicators that a plan creates.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// The numbers of groups, communicators and creation steps of a plan. A sum that overflows 64 bits
/// is the largest number of 64 bits.
struct PlanCounts {
  /// The least and the greatest value of a number that differs between ranks.
  struct PerRank {
    std::int64_t least = 0;
    std::int64_t most = 0;
    /// False if the world is too large to visit every rank: both values are then those of rank 0.
    bool covers_all = true;
    friend bool operator==(const PerRank&, const PerRank&) = default;
  };

  std::int64_t world_size = 0;
  std::int64_t names = 0;          ///< families
  std::int64_t groups = 0;         ///< of all families
  std::int64_t groups_of_one = 0;  ///< groups of one rank
  /// Groups that differ in their ranks or in the order of these, groups of one included.
  std::int64_t distinct_groups = 0;
  /// Groups of overlapping families, which are printed but never executed.
  std::int64_t overlapping_groups = 0;
  /// One per distinct group of two or more ranks that is executed, and one more for each key in
  /// the option GroupOptions::duplicates.
  std::int64_t communicators = 0;
  /// Collective MPI calls that create communicators, in which every rank takes part.
  std::int64_t splits = 0;
  /// NCCL unique IDs on all ranks together: one or more per communicator, none if it is split from
  /// another one.
  std::int64_t unique_ids = 0;
  PerRank groups_per_rank;
  PerRank communicators_per_rank;

  /// Returns how many times a unique ID is broadcast: each one once in its group.
  [[nodiscard]] std::int64_t broadcasts() const { return unique_ids; }
  /// Returns the number of groups that have the same ranks in the same order as an earlier group.
  [[nodiscard]] std::int64_t repeated_groups() const { return groups - distinct_groups; }
  /// Returns how many communicators each rank would create if every group were created on every
  /// rank, as `torch.distributed.new_group` requires.
  [[nodiscard]] std::int64_t naive_creations_per_rank() const { return groups; }
  /// Returns the same for all ranks together.
  [[nodiscard]] RANKMESH_API std::int64_t naive_creations() const;

  friend bool operator==(const PlanCounts&, const PlanCounts&) = default;
};

/// Counts the groups and communicators of a plan. The result is exact. Local, no MPI.
/// Cost: O(families^2 x dimensions) for families that partition the world by strides. Other
/// families (lists, partial and overlapping ones) are enumerated where arithmetic does not suffice,
/// up to 16,777,216 ranks for the figures per rank (4 bytes per rank of the world); above this
/// limit the figures per rank are those of rank 0.
RANKMESH_API PlanCounts count(const MeshPlan& plan);

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The numbers of groups and communicators that a plan creates.
#pragma once

#include <cstdint>

#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// The numbers of groups, communicators and creation steps of a plan. A number that would overflow
/// 64 bits is replaced by the largest 64-bit number.
struct PlanCounts {
  /// A number that can differ between ranks. This struct holds its least and its greatest value.
  struct PerRank {
    std::int64_t least = 0;  ///< The least value of all ranks.
    std::int64_t most = 0;   ///< The greatest value of all ranks.
    /// False if the plan has too many ranks to visit them all. In this case, `least` and `most` are
    /// both the value of rank 0.
    bool covers_all = true;
    /// Returns whether all fields are equal.
    friend bool operator==(const PerRank&, const PerRank&) = default;
  };

  std::int64_t world_size = 0;     ///< The number of ranks.
  std::int64_t names = 0;          ///< number of families
  std::int64_t groups = 0;         ///< total number of groups in all families
  std::int64_t groups_of_one = 0;  ///< number of groups that have only one rank
  /// The number of groups, where groups that have the same ranks in the same order are counted
  /// once. Groups of one rank are included.
  std::int64_t distinct_groups = 0;
  /// The number of groups in overlapping families. Such groups can be printed, but not executed.
  std::int64_t overlapping_groups = 0;
  /// The number of communicators. Each distinct group of two or more ranks has one communicator,
  /// except the groups of overlapping families. Each key in GroupOptions::duplicates adds one
  /// communicator per group. Equal groups of two families have separate communicators if the
  /// options of the families differ (GroupOptions::can_share).
  std::int64_t communicators = 0;
  /// The number of MPI calls with which all ranks together create their communicators. Each member
  /// of a group makes one call for each communicator of the group, and no other rank takes part.
  std::int64_t creations = 0;
  /// The total number of NCCL unique IDs that the ranks create. A communicator that is split from
  /// another communicator needs no ID. Every other communicator needs at least one ID.
  std::int64_t unique_ids = 0;
  PerRank groups_per_rank;  ///< The number of groups that a rank is in.
  /// The number of communicators that a rank needs, and creates by one call each.
  PerRank communicators_per_rank;

  /// Returns the number of broadcasts of unique IDs. Each ID is broadcast once within its group.
  [[nodiscard]] std::int64_t broadcasts() const { return unique_ids; }
  /// Returns the number of groups that have the same ranks in the same order as an earlier group.
  [[nodiscard]] std::int64_t repeated_groups() const { return groups - distinct_groups; }
  /// Returns the number of communicators that each rank would create if every group were created on
  /// every rank, as `torch.distributed.new_group` requires.
  [[nodiscard]] std::int64_t naive_creations_per_rank() const { return groups; }
  /// Returns the sum of naive_creations_per_rank() over all ranks.
  [[nodiscard]] std::int64_t naive_creations() const;

  /// Returns whether all fields are equal.
  friend bool operator==(const PlanCounts&, const PlanCounts&) = default;
};

/// Counts the groups and communicators of a plan. The result is exact. The function is local and
/// does not call MPI. The cost is O(families^2 x dimensions) if every family is a strided partition
/// of the world.
///
/// Other families (lists, partial families and overlapping families) are enumerated group by group
/// if arithmetic cannot count their groups. The figures per rank always need this enumeration. It
/// takes 8 bytes of memory per rank of the world, and is limited to 16,777,216 ranks. For larger
/// worlds with such families, the figures per rank are the values of rank 0.
PlanCounts count(const MeshPlan& plan);

}  // namespace rankmesh

// How many groups and communicators a plan makes.
#pragma once

#include <cstdint>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/mesh_plan.hpp"

namespace rankmesh {

/// What a plan creates. Sums that 64 bits do not hold stay at the largest number of 64 bits.
struct PlanCounts {
  /// A number that may differ from rank to rank.
  struct PerRank {
    std::int64_t least = 0;
    std::int64_t most = 0;
    bool covers_all =
        true;  ///< false: both are rank 0's alone, the world being too large to look at every rank
    friend bool operator==(const PerRank&, const PerRank&) = default;
  };

  std::int64_t world_size = 0;
  std::int64_t names = 0;
  std::int64_t groups = 0;              ///< of all names
  std::int64_t groups_of_one = 0;       ///< those of them with one rank
  std::int64_t distinct_groups = 0;     ///< as lists of ranks, in order; groups of one included
  std::int64_t overlapping_groups = 0;  ///< of names that are printed but never executed
  std::int64_t communicators = 0;       ///< one per distinct group of two or more ranks that is
                                        ///< executed, and one more per key of duplicate_key
  std::int64_t splits = 0;  ///< MPI creations that every rank takes part in: names that need one
  std::int64_t unique_ids = 0;  ///< NCCL's, on all ranks together: one per communicator, or more,
                                ///< or none where it is split from another
  PerRank groups_per_rank;
  PerRank communicators_per_rank;

  /// Each unique ID is broadcast once in its group.
  [[nodiscard]] std::int64_t broadcasts() const { return unique_ids; }
  /// Groups whose list of ranks another group has already.
  [[nodiscard]] std::int64_t repeated_groups() const { return groups - distinct_groups; }
  /// What creating every group on every rank would take: one creation per group of every name, on
  /// each rank.
  [[nodiscard]] std::int64_t naive_creations_per_rank() const { return groups; }
  [[nodiscard]] RANKMESH_API std::int64_t naive_creations() const;

  friend bool operator==(const PlanCounts&, const PlanCounts&) = default;
};

/// Exact. Cost: O(names^2 x dimensions) for names that partition the world by strides; names that
/// cover a part of it, overlap or stand as lists are enumerated where arithmetic does not tell, up
/// to 16,777,216 of their ranks for the figures per rank (4 bytes per rank of the world); above,
/// those are rank 0's.
RANKMESH_API PlanCounts count(const MeshPlan& plan);

}  // namespace rankmesh

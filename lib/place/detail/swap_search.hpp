// SPDX-License-Identifier: BSD-3-Clause
// Improves assignments of ranks to slots by swaps.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tracked_assignment.hpp"

namespace rankmesh::detail {

/// Swaps ranks, and whole groups, as long as this lowers the objective. The algorithm is the same
/// for all meshes; in large meshes, it tries a sample of the pairs instead of all pairs.
class SwapSearch {
 public:
  /// @param budget  the number of swaps that all calls together may try.
  SwapSearch(const Objective& objective, std::int64_t budget);

  [[nodiscard]] bool is_exhausted() const { return budget_ <= 0; }

  /// Swaps until no swap helps, or the budget is exhausted.
  void improve(TrackedAssignment& assignment);

  /// Returns the slots after a random change that improve() often cannot undo: some swaps, the
  /// members of two groups in two units swapped, the ranks of two units mixed, a new assignment
  /// that grows unit by unit, or a random one.
  [[nodiscard]] std::vector<std::int64_t> changed(const std::vector<std::int64_t>& slots);

 private:
  void improve_by_ranks(TrackedAssignment& assignment);
  bool improve_by_groups(TrackedAssignment& assignment);
  void swap_groups(std::span<const std::int32_t> a, std::span<const std::int32_t> b,
                   TrackedAssignment& assignment);
  void swap_shares(std::vector<std::int64_t>& slots);
  void mix_units(std::vector<std::int64_t>& slots);

  const Objective& objective_;
  std::int64_t budget_;
  std::mt19937_64 random_{1};
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The placement of experts on ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh::exchange {

/// Places experts on the ranks of an expert-parallel group. All functions are local.
///
/// The router chooses *logical* experts. A *physical* expert is a slot that holds a copy of a
/// logical expert. All ranks have the same number of slots. Slot p is on the rank p /
/// slots_per_rank() of the group. An expert with several slots is *redundant*: the tokens of this
/// expert are distributed among its slots. The vector `physical_to_logical` has the same meaning as
/// in DeepSeek's EPLB.
class RANKMESH_API ExpertMap {
 public:
  static constexpr std::int32_t empty = -1;  ///< Marks a slot without an expert.

  /// Creates a map that gives each expert one slot. The first ceil(experts / ranks) experts are on
  /// rank 0, the next ones on rank 1, and so on. The last slots may be empty.
  /// @throws UsageError if `experts` or `ranks` is less than 1.
  static ExpertMap contiguous(std::int64_t experts, std::int64_t ranks);
  /// Creates a map from the expert of each slot.
  /// @param physical_to_logical  The logical expert of each slot, or `empty`.
  /// @throws UsageError if the number of slots is not a multiple of the number of ranks, if an
  /// expert is not in 0 .. experts-1, or if an expert has no slot.
  ExpertMap(std::vector<std::int32_t> physical_to_logical, std::int64_t experts,
            std::int64_t ranks);

  /// Returns the number of logical experts.
  [[nodiscard]] std::int64_t experts() const {
    return static_cast<std::int64_t>(first_.size()) - 1;
  }
  /// Returns the number of ranks.
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  /// Returns the number of slots on all ranks.
  [[nodiscard]] std::int64_t slots() const { return static_cast<std::int64_t>(logical_.size()); }
  /// Returns the number of slots on each rank.
  [[nodiscard]] std::int64_t slots_per_rank() const { return slots() / ranks_; }
  /// Returns the logical expert of each slot, or `empty`.
  [[nodiscard]] std::span<const std::int32_t> physical_to_logical() const { return logical_; }
  /// Returns the logical expert of each slot of a rank, or `empty`.
  [[nodiscard]] std::span<const std::int32_t> experts_of(std::int64_t rank) const {
    return std::span{logical_}.subspan(static_cast<std::size_t>(rank * slots_per_rank()),
                                       static_cast<std::size_t>(slots_per_rank()));
  }
  /// Returns the slots that hold an expert, in ascending order.
  [[nodiscard]] std::span<const std::int32_t> replicas(std::int64_t expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return std::span{replicas_}.subspan(first_[e], first_[e + 1] - first_[e]);
  }
  /// Returns whether both maps place all experts equally.
  friend bool operator==(const ExpertMap&, const ExpertMap&) = default;

 private:
  std::vector<std::int32_t> logical_;   // the logical expert of each slot
  std::vector<std::int32_t> replicas_;  // the slots of each expert, expert by expert
  std::vector<std::size_t> first_;      // where each expert's replicas begin
  std::int64_t ranks_;
};

}  // namespace rankmesh::exchange

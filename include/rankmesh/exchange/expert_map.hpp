// Which rank holds which expert.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/export.hpp"

namespace rankmesh::exchange {

/// Places experts on the ranks of an expert-parallel group. A *logical* expert is what the router
/// names; a *physical* expert is a slot that holds a copy of one: slot p is on rank p /
/// slots_per_rank() in the group, and all ranks have equally many. An expert with several slots is
/// *redundant*: its tokens are spread over them (DeepSeek's EPLB; `physical_to_logical` is its map
/// of that name). Plain data; nothing is sent.
class RANKMESH_API ExpertMap {
 public:
  static constexpr std::int32_t empty = -1;  ///< of a slot without an expert

  /// One slot per expert, in order: rank 0 has the first ceil(experts / ranks) ones, and so on; the
  /// last slots may be empty. @throws UsageError for less than one expert or rank.
  static ExpertMap contiguous(std::int64_t experts, std::int64_t ranks);
  /// @param physical_to_logical  for each slot its logical expert, or `empty`; as many per rank.
  /// @throws UsageError where the slots cannot be divided by the ranks, an expert is not in 0 ..
  /// experts-1,
  ///         or one has no slot.
  ExpertMap(std::vector<std::int32_t> physical_to_logical, std::int64_t experts,
            std::int64_t ranks);

  [[nodiscard]] std::int64_t experts() const {
    return static_cast<std::int64_t>(first_.size()) - 1;
  }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] std::int64_t slots() const { return static_cast<std::int64_t>(logical_.size()); }
  [[nodiscard]] std::int64_t slots_per_rank() const { return slots() / ranks_; }
  /// For each slot its logical expert.
  [[nodiscard]] std::span<const std::int32_t> physical_to_logical() const { return logical_; }
  /// The logical experts of one rank's slots.
  [[nodiscard]] std::span<const std::int32_t> experts_of(std::int64_t rank) const {
    return std::span{logical_}.subspan(static_cast<std::size_t>(rank * slots_per_rank()),
                                       static_cast<std::size_t>(slots_per_rank()));
  }
  /// The slots that hold an expert, rising.
  [[nodiscard]] std::span<const std::int32_t> replicas(std::int64_t expert) const {
    const auto e = static_cast<std::size_t>(expert);
    return std::span{replicas_}.subspan(first_[e], first_[e + 1] - first_[e]);
  }
  friend bool operator==(const ExpertMap&, const ExpertMap&) = default;

 private:
  std::vector<std::int32_t> logical_;   // by slot
  std::vector<std::int32_t> replicas_;  // slots, by expert
  std::vector<std::size_t> first_;      // where each expert's replicas begin
  std::int64_t ranks_;
};

}  // namespace rankmesh::exchange

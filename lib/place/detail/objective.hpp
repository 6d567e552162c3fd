// SPDX-License-Identifier: BSD-3-Clause
// The bytes per level of an assignment of ranks to slots, which can be updated for a swap.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "rankmesh/place/traffic.hpp"

namespace rankmesh::detail {

/// The number of splits of families that must stay in their nodes, then the bytes per level,
/// outermost first; compared in this order.
using LevelBytes = std::vector<std::int64_t>;

/// The groups that send, as flat lists of ranks.
class Objective {
 public:
  /// @throws as bytes_per_level().
  Objective(const MeshPlan& plan, const Machine& machine, std::span<const FamilyTraffic> traffic,
            std::span<const std::string> kept_in_nodes = {});

  [[nodiscard]] std::size_t levels() const { return machine_.levels().size(); }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  /// The number of group members of all families, a measure of the time of evaluate().
  [[nodiscard]] std::int64_t members() const { return members_count_; }

  /// Returns the bytes of an assignment. Takes O(members x levels) time.
  [[nodiscard]] LevelBytes evaluate(std::span<const std::int64_t> slots) const;

  /// Returns the bytes of the groups that contain one of the two ranks; each group counts once.
  /// Takes time proportional to the sizes of these groups.
  [[nodiscard]] LevelBytes around(std::int64_t a, std::int64_t b,
                                  std::span<const std::int64_t> slots) const;

  /// Returns the number of members that around() visits, times the levels.
  [[nodiscard]] std::int64_t visited_around(std::int64_t a, std::int64_t b) const;

  /// Calls `take(a, b)` with the members of each two groups of one family that have equal sizes.
  template <class Take>
  void each_pair_of_groups(Take&& take) const {
    for (const Family& family : families_) {
      const auto members = [&](std::size_t g) {
        return std::span{family.members}.subspan(
            static_cast<std::size_t>(family.starts[g]),
            static_cast<std::size_t>(family.starts[g + 1] - family.starts[g]));
      };
      for (std::size_t a = 0; a + 1 < family.starts.size(); ++a)
        for (std::size_t b = a + 1; b + 1 < family.starts.size(); ++b)
          if (members(a).size() == members(b).size()) take(members(a), members(b));
    }
  }

  /// Returns the lower bound (least_bytes_per_level()).
  [[nodiscard]] LevelBytes bound() const;

 private:
  struct Family {
    Pattern pattern;
    std::int64_t bytes;
    bool is_kept;                        // in its nodes; then it sends nothing
    std::vector<std::int32_t> members;   // of all groups, one after another
    std::vector<std::int64_t> starts;    // of each group, and the end
    std::vector<std::int32_t> group_of;  // of each rank; -1 without a group
  };

  void add_family(const GroupFamily& family, const FamilyTraffic& traffic, bool is_kept);
  void add_group(const Family& family, std::size_t group, std::span<const std::int64_t> slots,
                 LevelBytes& to) const;

  const Machine& machine_;
  std::int64_t ranks_;
  std::int64_t members_count_ = 0;
  std::vector<Family> families_;
  mutable std::vector<std::vector<std::int64_t>> count_, stamp_;  // per level and unit
  mutable std::int64_t mark_ = 0;
};

/// Returns the bytes that leave units if `counts` members of one group are in them.
std::int64_t bytes_between(Pattern pattern, std::int64_t bytes, std::int64_t size,
                           std::int64_t units, std::int64_t sum_of_squares,
                           std::int64_t crossing_neighbours);

}  // namespace rankmesh::detail

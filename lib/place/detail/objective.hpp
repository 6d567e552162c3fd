// SPDX-License-Identifier: BSD-3-Clause
// The objective of the search: the bytes per level of an assignment of ranks to slots.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/place/traffic.hpp"

namespace rankmesh::detail {

/// The number of splits of families that must stay in their nodes, then the bytes per level,
/// outermost first; compared in this order.
using LevelBytes = std::vector<std::int64_t>;

/// How the members of a group lie on the units of a level.
struct GroupSpread {
  std::int64_t units = 0;      ///< that have members
  std::int64_t squares = 0;    ///< the sum of the squares of the members in each unit
  std::int64_t crossings = 0;  ///< neighbours in different units
};

/// Counts the members of one group after the other in the units of a level.
class UnitCounts {
 public:
  explicit UnitCounts(std::int64_t units) : counts_(static_cast<std::size_t>(units)) {}

  /// Adds the next member of the group.
  void add(std::int64_t unit) {
    std::int64_t& count = counts_[static_cast<std::size_t>(unit)];
    if (count == 0) touched_.push_back(unit);
    spread_.squares += 2 * count + 1;  // (count + 1)^2 - count^2
    ++count;
    spread_.crossings += last_ >= 0 && last_ != unit ? 1 : 0;
    last_ = unit;
  }

  /// Ends the group.
  GroupSpread take() {
    spread_.units = std::ssize(touched_);
    for (const std::int64_t unit : touched_) counts_[static_cast<std::size_t>(unit)] = 0;
    touched_.clear();
    last_ = -1;
    return std::exchange(spread_, {});
  }

 private:
  std::vector<std::int64_t> counts_, touched_;
  std::int64_t last_ = -1;
  GroupSpread spread_;
};

/// The groups of a family that sends, as flat lists of ranks.
struct SendingFamily {
  Pattern pattern;
  std::int64_t bytes;                  // that one rank sends
  std::int64_t most_between_nodes;     // of these bytes; 0: no limit
  bool is_kept;                        // in its nodes; then it sends nothing
  std::vector<std::int32_t> members;   // of all groups, one after another
  std::vector<std::int64_t> starts;    // of each group, and the end
  std::vector<std::int32_t> group_of;  // of each rank; -1 without a group
  std::vector<std::int32_t> place_of;  // of each rank: the index into `members`

  [[nodiscard]] std::size_t group_count() const { return starts.size() - 1; }
  [[nodiscard]] std::int64_t size_of(std::size_t group) const {
    return starts[group + 1] - starts[group];
  }
  [[nodiscard]] std::span<const std::int32_t> group(std::size_t index) const {
    return std::span{members}.subspan(static_cast<std::size_t>(starts[index]),
                                      static_cast<std::size_t>(size_of(index)));
  }
};

/// What is to be made small: evaluate().
class Objective {
 public:
  /// @throws as bytes_per_level().
  Objective(const MeshPlan& plan, const Machine& machine, std::span<const FamilyTraffic> traffic,
            std::span<const std::string> kept_in_nodes = {});

  [[nodiscard]] std::size_t levels() const { return machine_.levels().size(); }
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }
  [[nodiscard]] const Machine& machine() const { return machine_; }
  [[nodiscard]] const std::vector<SendingFamily>& families() const { return families_; }
  /// The number of group members of all families, a measure of the time of evaluate().
  [[nodiscard]] std::int64_t members() const { return members_count_; }

  /// Returns the bytes of an assignment. Takes O(members x levels) time.
  [[nodiscard]] LevelBytes evaluate(std::span<const std::int64_t> slots) const;

  /// Returns the lower bound (least_bytes_per_level()).
  [[nodiscard]] LevelBytes bound() const;

 private:
  void add_family(const GroupFamily& family, const FamilyTraffic& traffic, bool is_kept);
  void add_group(const SendingFamily& family, std::size_t group,
                 std::span<const std::int64_t> slots, LevelBytes& to) const;

  const Machine& machine_;
  std::int64_t ranks_;
  std::int64_t members_count_ = 0;
  std::vector<SendingFamily> families_;
  mutable std::vector<UnitCounts> counts_;  // of each level
};

/// Returns the bytes that leave the units of a level.
/// @param bytes  that one rank sends.
/// @param most   of these bytes that may leave its unit; 0: no limit.
/// @param size   of the group.
RANKMESH_API std::int64_t bytes_between(Pattern pattern, std::int64_t bytes, std::int64_t most,
                                        std::int64_t size, const GroupSpread& spread);

/// Returns FamilyTraffic::most_between_nodes, or 0 on levels inside nodes, where there is no limit.
inline std::int64_t limit_on(const Machine& machine, std::size_t level, std::int64_t most) {
  return level <= machine.node_level() ? most : 0;
}

/// @throws UsageError if a rank has no slot, if groups of a family overlap, or if the bytes cannot
/// be added up; UnknownName if a name is not the name of a family.
void require_traffic(const MeshPlan& plan, const Machine& machine,
                     std::span<const FamilyTraffic> traffic);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// An assignment of ranks to slots that knows its bytes while ranks swap their slots.
#pragma once

#include <cstdint>
#include <vector>

#include "objective.hpp"

namespace rankmesh::detail {

/// An assignment and its bytes. For each group and level, it keeps the number of members in each
/// unit. Therefore the time of a swap depends on the number of families and levels, and hardly on
/// the sizes of the groups.
class TrackedAssignment {
 public:
  TrackedAssignment(const Objective& objective, std::vector<std::int64_t> slots);

  /// Replaces the assignment. Takes as long as Objective::evaluate().
  void assign(std::vector<std::int64_t> slots);

  [[nodiscard]] const std::vector<std::int64_t>& slots() const { return slots_; }
  /// Returns Objective::evaluate(slots()).
  [[nodiscard]] const LevelBytes& bytes() const { return bytes_; }

  /// Returns whether the objective becomes smaller if two ranks swap their slots.
  [[nodiscard]] bool improves(std::size_t a, std::size_t b) const;
  /// Swaps the slots of two ranks.
  void swap(std::size_t a, std::size_t b);

 private:
  // The members of a group in one unit.
  struct Share {
    std::int32_t unit, count;
  };
  // A group on one level.
  struct Spread {
    std::int64_t units = 0;    // that have members, which is the number of shares in use
    std::int64_t squares = 0;  // the sum of the squares of the counts
  };
  // A family on one level. The shares of a group begin at the place of its first member, and are
  // sorted by their units. Chains have none, because only neighbours count.
  struct Level {
    const SendingFamily* family;
    std::size_t level;
    std::size_t place;  // in LevelBytes
    std::int64_t most;  // of bytes_between()
    std::vector<Share> shares;
    std::vector<Spread> spreads;
  };

  [[nodiscard]] std::int32_t& unit(std::size_t level, std::size_t rank) {
    return units_[level * slots_.size() + rank];
  }
  [[nodiscard]] std::int32_t unit(std::size_t level, std::size_t rank) const {
    return units_[level * slots_.size() + rank];
  }
  [[nodiscard]] static std::int64_t bytes_of(const Level& level, std::size_t group,
                                             const Spread& spread);
  // The change of a group's bytes if one member moves.
  [[nodiscard]] static std::int64_t change_of_move(const Level& level, std::int32_t group,
                                                   std::int32_t from, std::int32_t to);
  // The change of the number of neighbours of a rank in different units, if it and another rank
  // swap.
  [[nodiscard]] std::int64_t crossings(const Level& level, std::size_t rank,
                                       std::size_t other) const;
  // The change of the bytes if two ranks with different units on this level swap.
  [[nodiscard]] std::int64_t change(const Level& level, std::size_t a, std::size_t b) const;
  // Adds a member to a unit, or removes one.
  static void add(Level& level, std::int32_t group, std::int32_t unit, std::int32_t count);

  const Objective& objective_;
  std::vector<std::int64_t> slots_;
  std::vector<std::int32_t> units_;  // [level][rank]
  std::vector<Level> levels_;        // in the order of LevelBytes
  LevelBytes bytes_;
};

}  // namespace rankmesh::detail

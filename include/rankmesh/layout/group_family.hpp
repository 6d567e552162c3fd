// SPDX-License-Identifier: BSD-3-Clause
// The set of all groups of one kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/layout/layout.hpp"
#include "rankmesh/layout/rank_set.hpp"

namespace rankmesh {

/// How the groups of a family cover the world.
enum class Coverage : std::uint8_t {
  partition,    ///< every rank is in exactly one group
  partial,      ///< some ranks are in no group
  overlapping,  ///< some ranks are in several groups; the groups can only be printed, not executed
};

/// The place of a rank in a family: the number of the group, and the number of the rank in this
/// group.
struct GroupIndex {
  std::int64_t group = 0;       ///< number of the group in listing order
  RankInGroup rank_in_group{};  ///< number of the rank in the group
  /// Returns whether all fields are equal.
  friend bool operator==(const GroupIndex&, const GroupIndex&) = default;
};

/// The set of all groups of one kind. These are the groups along a dimension, the groups along a
/// product of dimensions, or groups that are given as lists. The order of the groups is called the
/// listing order.
///
/// A family has one of three representations:
/// - A strided family has groups of equal size, which are described by strides. For any number of
///   groups, the family needs O(dimensions) memory, and each query takes O(dimensions) time.
/// - A ring has pairs of neighbours along a dimension. It costs as much as a strided family.
/// - A family of explicit lists has a list of ranks for each group. It needs memory for each listed
///   rank.
///
/// A family is immutable after construction, and several threads can use it safely.
class RANKMESH_API GroupFamily {
 public:
  /// Creates the groups along `members`. Two ranks are in the same group if all their coordinates
  /// are equal, except those along `members`.
  /// @param name  the name of the family.
  /// @param members  the indices of the dimensions along which the groups run. In a group, the
  /// coordinate along the last of these dimensions varies fastest.
  /// @param listing  the indices of all other dimensions. In the list of groups, the coordinate
  /// along the last of these dimensions varies fastest.
  /// @throws UsageError unless `members` and `listing` together contain each dimension once.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members, std::span<const std::size_t> listing);
  /// Creates the groups along `members`. The groups and the ranks in each group are in the order of
  /// the layout. The order of `members` has no influence.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members);
  /// Creates one group for each rank of the layout. The group contains the rank and its successor
  /// along the dimension. The last rank along the dimension has the first rank as its successor.
  /// The groups are in the order of the layout, and they overlap.
  static GroupFamily ring(std::string name, const Layout& layout, std::size_t dimension);
  /// Creates a family from a list of ranks for each group. The groups keep the given order. The
  /// family takes O(number of listed ranks) memory.
  /// @throws SpecError if a group is empty.
  static GroupFamily of(std::string name, std::vector<RankSet> groups);

  /// Returns the name of the family.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the names of the dimensions along which the groups run. In a group, the coordinate
  /// along the last of these dimensions varies fastest. The result is empty if the
  /// family has explicit lists of ranks.
  [[nodiscard]] const std::vector<std::string>& dimensions() const { return dimensions_; }
  /// Returns the number of groups.
  [[nodiscard]] std::int64_t group_count() const;
  /// Returns the number of ranks in the largest group. Only a family of explicit lists can have
  /// groups of different sizes.
  [[nodiscard]] std::int64_t group_size() const { return group_size_; }
  /// Returns whether all groups have the same size.
  [[nodiscard]] bool is_uniform() const { return explicit_ == nullptr || uniform_; }
  /// Returns whether the family is strided, which means that it is neither a ring nor given as
  /// lists. In a strided family, adding an offset to the positions of the first group gives any
  /// other group.
  [[nodiscard]] bool is_strided() const { return explicit_ == nullptr && !ring_; }
  /// Returns group i in listing order.
  /// @throws UsageError unless 0 <= i < group_count().
  [[nodiscard]] RankSet group(std::int64_t i) const;

  /// Returns the place of the rank. If the rank is in several groups, the result is its place in
  /// the first of these groups. The result is empty if the rank is in no group.
  [[nodiscard]] std::optional<GroupIndex> find(Rank rank) const;
  /// Returns the places of the rank in all groups that contain it.
  [[nodiscard]] std::vector<GroupIndex> find_all(Rank rank) const;
  /// Returns the number of the group that has exactly these ranks in this order, or nothing if
  /// there is no such group.
  [[nodiscard]] std::optional<std::int64_t> find_group(const RankSet& ranks) const;

  /// Returns the ranks of all groups, one group after another. Group g begins at element g *
  /// group_size(). Returns null if the family is not strided.
  [[nodiscard]] const RankSet* in_sequence() const { return is_strided() ? &all_ : nullptr; }
  /// Returns the first rank of every group. Returns null if the family is not strided, or if its
  /// layout has a table.
  [[nodiscard]] const RankSet* first_ranks() const {
    return is_strided() && !all_.table() ? &starts_ : nullptr;
  }

  /// Returns the highest rank in any group. Takes O(1) time, or O(ranks) time if the family is a
  /// part of a layout that has a table.
  [[nodiscard]] Rank highest() const;
  /// Returns how the groups cover the ranks 0 .. world_size-1.
  [[nodiscard]] Coverage coverage(std::int64_t world_size) const;
  /// Returns the distance between neighbours in a group. The result is empty if the distances
  /// differ or the groups have only one member. It is also empty for a ring, for a family of
  /// explicit lists, and for layouts that have a table.
  [[nodiscard]] std::optional<std::int64_t> stride() const;

  /// Returns true if arithmetic shows that both families have the same groups in any listing order.
  /// If the result is false, either the groups differ or arithmetic cannot compare them. Arithmetic
  /// cannot compare families that are not strided or that have different tables.
  [[nodiscard]] bool has_same_groups(const GroupFamily& other) const;

  /// Returns the text that represents the family in MeshPlan::digest().
  [[nodiscard]] std::string canonical() const;

 private:
  friend class RankMap;  // maps the groups to other ranks

  struct Explicit {
    std::vector<RankSet> groups;
    std::vector<std::pair<std::int64_t, GroupIndex>> places;  // sorted by rank, then by group
    // The groups by numbers that follow from their ranks, so that a group is found among many.
    std::vector<std::pair<std::uint64_t, std::int64_t>> by_ranks;
  };

  // `size` and `stride` belong to the dimension of the ring. `weight` is the distance between a
  // rank and its successor in the order of the layout.
  struct RingOfPairs {
    std::int64_t size, stride, weight;
  };

  GroupFamily() = default;
  [[nodiscard]] RankSet pair(std::int64_t i) const;
  [[nodiscard]] std::vector<GroupIndex> find_pairs(Rank rank) const;

  std::string name_;
  std::vector<std::string> dimensions_;
  std::int64_t group_size_ = 0;
  Divider by_group_size_;  // used only if the family is strided
  bool uniform_ = true;
  // If the family is strided, element g * group_size + k of `all_` is rank k of group g. `starts_`
  // holds the positions of the first ranks of the groups, and `members_` holds the modes, which are
  // the same for all groups.
  RankSet all_;
  RankSet starts_;
  std::vector<Mode> members_;
  std::optional<RingOfPairs>
      ring_;  // group g is element g of `all_` and the successor of this element
  std::shared_ptr<const Explicit> explicit_;
};

}  // namespace rankmesh

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
  overlapping,  ///< a rank is in several groups; these can be printed, but never executed
};

/// The place of a rank in a family.
struct GroupIndex {
  std::int64_t group = 0;       ///< number of the group in listing order
  RankInGroup rank_in_group{};  ///< number of the rank in the group
  friend bool operator==(const GroupIndex&, const GroupIndex&) = default;
};

/// The set of all groups of one kind: the groups along a dimension, the groups along a product of
/// dimensions, or groups that are given as lists. The order of the groups is called the listing
/// order.
/// A family has one of three representations. A strided family has any number of groups, which all
/// have the same size. It needs O(dimensions) memory, and each query takes O(dimensions) time. A
/// ring has the same costs as a strided family. Explicit lists need memory for each listed rank.
/// A family is immutable after construction, and several threads can use it safely.
class RANKMESH_API GroupFamily {
 public:
  /// Creates the groups of ranks that share every coordinate except those along `members`.
  /// @param name  the name of the family.
  /// @param members  the indices of the dimensions along which the groups run. They give the order
  /// of the ranks in a group, where the last dimension varies fastest.
  /// @param listing  the indices of all other dimensions. They give the order of the groups, where
  /// the last dimension varies fastest.
  /// @throws UsageError unless `members` and `listing` together contain each dimension once.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members, std::span<const std::size_t> listing);
  /// Creates the same groups as the function above, but takes both orders from the layout. The
  /// order of the ranks then does not depend on the order in which a product is written.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members);
  /// Creates a group for each rank, which is the pair of the rank and its successor along the
  /// dimension. The successor of the last rank is the first rank. The number of groups is the
  /// number of ranks, and the groups are in the order of the layout. The groups overlap.
  static GroupFamily ring(std::string name, const Layout& layout, std::size_t dimension);
  /// Creates a family of explicit lists, in the given order. The family takes O(number of listed
  /// ranks) memory.
  /// @throws SpecError if a group is empty.
  static GroupFamily of(std::string name, std::vector<RankSet> groups);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Returns the dimensions along which the groups run, in the order of the ranks. The result is
  /// empty for explicit lists.
  [[nodiscard]] const std::vector<std::string>& dimensions() const { return dimensions_; }
  /// Returns the number of groups.
  [[nodiscard]] std::int64_t group_count() const;
  /// Returns the number of ranks of the largest group. Only explicit lists can have groups of
  /// different sizes.
  [[nodiscard]] std::int64_t group_size() const { return group_size_; }
  /// Returns whether all groups have the same size.
  [[nodiscard]] bool is_uniform() const { return explicit_ == nullptr || uniform_; }
  /// Returns whether the family is strided, which means that it has neither explicit lists nor a
  /// ring. In a strided family, every group is the first group moved by an offset.
  [[nodiscard]] bool is_strided() const { return explicit_ == nullptr && !ring_; }
  /// Returns group i in listing order.
  /// @throws UsageError unless 0 <= i < group_count().
  [[nodiscard]] RankSet group(std::int64_t i) const;

  /// Returns the place of the rank. Returns the first place if the rank is in several groups, and
  /// nothing if the rank is in no group.
  [[nodiscard]] std::optional<GroupIndex> find(Rank rank) const;
  /// Returns all places of the rank.
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

  /// Returns the highest rank of all groups. Takes O(1) time, or O(listed ranks) time for explicit
  /// lists.
  [[nodiscard]] Rank highest() const;
  /// Returns how the groups cover the ranks 0 .. world_size-1.
  [[nodiscard]] Coverage coverage(std::int64_t world_size) const;
  /// Returns the distance between neighbours in a group. Returns nothing if the distances differ,
  /// or if groups have one member.
  [[nodiscard]] std::optional<std::int64_t> stride() const;

  /// Returns whether both families have the same groups in any listing order, as far as arithmetic
  /// can tell. If the result is true, the groups are the same. The result is also false if the
  /// answer is not known, because a family is not strided or the tables differ.
  [[nodiscard]] bool has_same_groups(const GroupFamily& other) const;

  /// Returns the family as text, for digests. See MeshPlan::digest().
  [[nodiscard]] std::string canonical() const;

 private:
  friend class RankMap;  // maps the groups to other ranks

  struct Explicit {
    std::vector<RankSet> groups;
    std::vector<std::pair<std::int64_t, GroupIndex>> places;  // by rank, then by group
  };

  // The size and stride of the ring's dimension. `weight` is the difference between the indices of
  // a rank and its successor in the order of the layout.
  struct Ring {
    std::int64_t size, stride, weight;
  };

  GroupFamily() = default;
  [[nodiscard]] RankSet pair(std::int64_t i) const;
  [[nodiscard]] std::vector<GroupIndex> find_pairs(Rank rank) const;

  std::string name_;
  std::vector<std::string> dimensions_;
  std::int64_t group_size_ = 0;
  Divider by_group_size_;  // if the family is strided
  bool uniform_ = true;
  // If the family is strided, element g * group_size + k of `all_` is rank k of group g. `starts_`
  // holds the positions of the first ranks of the groups, and `members_` holds the modes of each
  // group.
  RankSet all_;
  RankSet starts_;
  std::vector<Mode> members_;
  std::optional<Ring> ring_;  // group g is element g of `all_` and the successor of this element
  std::shared_ptr<const Explicit> explicit_;
};

}  // namespace rankmesh

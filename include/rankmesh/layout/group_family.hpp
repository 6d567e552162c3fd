// All groups of one name.
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

/// How the groups of a name lie over the world.
enum class Coverage : std::uint8_t {
  partition,    ///< every rank is in exactly one group
  partial,      ///< some ranks are in none
  overlapping,  ///< a rank is in several: can be printed, never executed
};

/// Where a rank stands in a family.
struct GroupIndex {
  std::int64_t group = 0;       ///< index of the group, in listing order
  RankInGroup rank_in_group{};  ///< index of the rank in it
  friend bool operator==(const GroupIndex&, const GroupIndex&) = default;
};

/// The groups of one name, in the order in which they are listed. Three representations: strided
/// (any number of groups of one size, O(dimensions) memory and O(dimensions) per question), a ring
/// (as cheap), or explicit lists.
class RANKMESH_API GroupFamily {
 public:
  /// The groups of ranks that share every coordinate but those of `members`. Ranks in a group
  /// follow the order of `members`, groups the order of `listing`, the last varying fastest in
  /// both.
  /// @param members, listing  indices of the layout's dimensions; together each exactly once.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members, std::span<const std::size_t> listing);
  /// The same with both in the layout's own order: rank order never depends on how a product is
  /// written.
  static GroupFamily of(std::string name, const Layout& layout,
                        std::span<const std::size_t> members);
  /// For each rank the pair of it and its successor along a dimension, the last's being the first:
  /// as many groups as ranks, listed in the layout's order. Overlapping.
  static GroupFamily ring(std::string name, const Layout& layout, std::size_t dimension);
  /// Explicit lists, in their order. Memory: O(number of ranks listed).
  static GroupFamily of(std::string name, std::vector<RankSet> groups);

  [[nodiscard]] const std::string& name() const { return name_; }
  /// The dimensions that the groups run along, in rank order; empty for explicit lists.
  [[nodiscard]] const std::vector<std::string>& dimensions() const { return dimensions_; }
  [[nodiscard]] std::int64_t group_count() const;
  /// Members of the largest group; all have this size unless the lists are explicit.
  [[nodiscard]] std::int64_t group_size() const { return group_size_; }
  /// Whether all groups have the same size.
  [[nodiscard]] bool is_uniform() const { return explicit_ == nullptr || uniform_; }
  /// Whether every group is a translate of the first, known by strides: neither lists nor a ring.
  [[nodiscard]] bool is_strided() const { return explicit_ == nullptr && !ring_; }
  /// Group i in listing order. @throws UsageError outside 0 <= i < group_count().
  [[nodiscard]] RankSet group(std::int64_t i) const;

  /// Where the rank stands; the first place where it stands in several; nothing where it is in no
  /// group.
  [[nodiscard]] std::optional<GroupIndex> find(Rank rank) const;
  /// Every place where the rank stands.
  [[nodiscard]] std::vector<GroupIndex> find_all(Rank rank) const;
  /// The group with exactly these ranks in this order.
  [[nodiscard]] std::optional<std::int64_t> find_group(const RankSet& ranks) const;

  /// The ranks of all groups, one group after another: group g begins at element g * group_size().
  /// Null where the family is not strided.
  [[nodiscard]] const RankSet* in_sequence() const { return is_strided() ? &all_ : nullptr; }
  /// The first rank of every group. Null where the family is not strided or its layout has a table.
  [[nodiscard]] const RankSet* first_ranks() const {
    return is_strided() && !all_.table() ? &starts_ : nullptr;
  }

  /// The highest rank in any group. O(1), or O(ranks listed).
  [[nodiscard]] Rank highest() const;
  /// How the groups lie over ranks 0 .. world_size-1.
  [[nodiscard]] Coverage coverage(std::int64_t world_size) const;
  /// The step between neighbours of a group; nothing where the steps differ or there is only one
  /// member.
  [[nodiscard]] std::optional<std::int64_t> stride() const;

  /// Whether both are the same groups in whatever order they are listed, known by arithmetic alone:
  /// both strided, over the same table, on the same ranks. False where that cannot be told at once.
  [[nodiscard]] bool has_same_groups(const GroupFamily& other) const;

  /// The family as text, for digests; see MeshPlan::digest().
  [[nodiscard]] std::string canonical() const;

 private:
  friend class RankMap;  // puts the same groups on other ranks

  struct Explicit {
    std::vector<RankSet> groups;
    std::vector<std::pair<std::int64_t, GroupIndex>> places;  // by rank, then by group
  };

  // Along the ring's dimension: its size and stride, and what one step adds to the index of a rank.
  struct Ring {
    std::int64_t size, stride, weight;
  };

  GroupFamily() = default;
  [[nodiscard]] RankSet pair(std::int64_t i) const;
  [[nodiscard]] std::vector<GroupIndex> find_pairs(Rank rank) const;

  std::string name_;
  std::vector<std::string> dimensions_;
  std::int64_t group_size_ = 0;
  Divider by_group_size_;  // where strided
  bool uniform_ = true;
  // Strided: element g * group_size + k of `all_` is rank k of group g; `starts_` are positions of
  // the groups' first ranks, `members_` the modes of each.
  RankSet all_;
  RankSet starts_;
  std::vector<Mode> members_;
  std::optional<Ring> ring_;  // group g: element g of `all_` and the next along the dimension
  std::shared_ptr<const Explicit> explicit_;
};

}  // namespace rankmesh

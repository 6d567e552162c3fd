// All groups of a mesh as data: who is in which group, in which order, and which communicator
// serves whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/layout/batch_place.hpp"
#include "rankmesh/layout/group_family.hpp"
#include "rankmesh/layout/group_options.hpp"
#include "rankmesh/layout/layout.hpp"

namespace rankmesh {

/// One group that a rank is in.
struct Membership {
  std::size_t family = 0;  ///< index into MeshPlan::families()
  GroupIndex place{};
  RankSet ranks;
};

/// One communicator that a rank holds, and the names that it serves (indices into
/// MeshPlan::families()).
struct CommunicatorUse {
  RankSet ranks;
  std::vector<std::size_t> families;
  std::string
      duplicate_key;  ///< key of a further communicator of the same group; empty for the first
};

/// Pure arithmetic, the same on every rank; needs no MPI, for 10 ranks or 10 million.
/// Memory and time of every question are O(names x dimensions), whatever the number of ranks
/// (explicit lists and tables aside).
class RANKMESH_API MeshPlan {
 public:
  /// @param views     factorisations of the mesh's ranks.
  /// @param families  one per name, in the order in which they are listed and opened.
  /// @throws SpecError where a name stands twice or a rank lies outside the world.
  MeshPlan(std::int64_t world_size, std::vector<Layout> views, std::vector<GroupFamily> families);

  /// Ranks of the world, members of the mesh or not.
  [[nodiscard]] std::int64_t world_size() const { return world_size_; }
  [[nodiscard]] const std::vector<Layout>& views() const { return views_; }
  [[nodiscard]] const std::vector<GroupFamily>& families() const { return families_; }
  /// @throws UnknownName, whose hint lists the names that exist.
  [[nodiscard]] const GroupFamily& groups(std::string_view name) const;
  [[nodiscard]] std::size_t index_of(std::string_view name) const;

  /// How the communicators of a name are made. @throws UnknownName; SpecError where the options
  /// mean nothing: a parent that is split itself or does not hold the groups, numbers out of range,
  /// a key that stands twice.
  void set_options(std::string_view name, GroupOptions options);
  [[nodiscard]] const GroupOptions& options(std::size_t family) const { return options_[family]; }
  /// Every name with options of its own, for comparing plans between ranks; empty where there is
  /// none.
  [[nodiscard]] std::string options_text() const;

  /// A name of the plan, or a product of dimensions of one view (`dp*tp`) that need not be a name
  /// of it.
  [[nodiscard]] GroupFamily groups_of_product(std::string_view product) const;

  /// The rank's coordinates in all views, each dimension once; empty where the rank is outside the
  /// mesh.
  [[nodiscard]] std::vector<std::pair<std::string, Coordinate>> coordinates(Rank rank) const;
  /// @throws UnknownName where no view has the dimension; NotMember where the rank is outside the
  /// mesh.
  [[nodiscard]] Coordinate coordinate(Rank rank, std::string_view dimension) const;
  /// `pp=1,dp=0,tp=3`, for messages; `outside the mesh` where it is.
  [[nodiscard]] std::string describe(Rank rank) const;

  /// Every group of the rank, in the order of the names.
  [[nodiscard]] std::vector<Membership> memberships(Rank rank) const;
  /// The communicators that the rank holds: one per distinct group of two or more members, and one
  /// more for each key of duplicate_key; equal groups (the same ranks in the same order) share one
  /// where their options allow it. Overlapping names have none.
  [[nodiscard]] std::vector<CommunicatorUse> communicators(Rank rank) const;
  /// Whether creating this name's communicators takes a step of its own: some group of it has two
  /// or more members and no earlier name serves it. The same answer on every rank.
  [[nodiscard]] bool needs_creation(std::size_t family) const;
  /// Whether this name has communicators at all: groups of two or more that do not overlap.
  [[nodiscard]] bool has_communicators(std::size_t family) const;

  /// The member that makes this group's NCCL unique ID: (sum of the coordinates that the group's
  /// members share, in its view, + number of the name) mod size, so that leadership spreads over
  /// the ranks; for explicit lists the group's index stands for the sum.
  [[nodiscard]] RankInGroup leader(std::size_t family, std::int64_t group) const;
  /// How many unique IDs a communicator of so many ranks takes: none where it is split from
  /// another.
  [[nodiscard]] std::int64_t unique_ids(std::size_t family, std::int64_t ranks) const;

  /// Returns the place of this family's operations in a batch. The same answer on every rank.
  /// @param family  index into families().
  [[nodiscard]] BatchPlace batch_place(std::size_t family) const;

  /// 128-bit hash of the layout alone: `rankmesh.plan/1`, the world size, each view with its
  /// dimensions (name:size:stride), and each name with its groups as strides or lists; tables by
  /// their ranks. The text that is hashed is canonical_text(); docs/design.md describes it.
  [[nodiscard]] Hash128 digest() const;
  [[nodiscard]] std::string canonical_text() const;

 private:
  std::int64_t world_size_;
  std::vector<Layout> views_;
  std::vector<GroupFamily> families_;
  std::vector<GroupOptions> options_;  // per family
};

/// `tp` or `dp*cp` as its names, blanks removed.
RANKMESH_API std::vector<std::string> split_product(std::string_view product);

}  // namespace rankmesh

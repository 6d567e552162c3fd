// SPDX-License-Identifier: BSD-3-Clause
// Describes all groups of a mesh as data: the ranks of each group, the order of the ranks, and the
// communicators that the groups use.
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

/// A group that contains a given rank.
struct Membership {
  std::size_t family = 0;  ///< index into MeshPlan::families()
  GroupIndex place{};      ///< The group of the rank, and its place in the group.
  RankSet ranks;           ///< The members of the group, in group order.
};

/// A communicator of a given rank, and the families that use this communicator.
struct CommunicatorUse {
  RankSet ranks;                      ///< The members of the group, in group order.
  std::vector<std::size_t> families;  ///< indices into MeshPlan::families()
  /// The key of this communicator in GroupOptions::duplicates. The key is empty for the first
  /// communicator of a group.
  std::string duplicate_key;
};

/// The plan of a mesh, which consists of its views, its families and the options of the families. A
/// plan is computed by arithmetic without MPI, and it is the same on every rank. The memory of a
/// plan and the time of each query are O(families x dimensions). Both depend on the number of ranks
/// only if the plan has explicit lists of ranks or tables of ranks. Several threads can read a plan
/// safely.
class RANKMESH_API MeshPlan {
 public:
  /// Creates a plan.
  /// @param world_size  the number of ranks in the world, including the ranks outside the mesh.
  /// @param views  the views, which are factorisations of the ranks of the mesh.
  /// @param families  the families, in the order in which they are listed and opened.
  /// @throws SpecError if two families have the same name, or if a rank is outside the world.
  MeshPlan(std::int64_t world_size, std::vector<Layout> views, std::vector<GroupFamily> families);

  /// Returns the number of ranks in the world, including the ranks outside the mesh.
  [[nodiscard]] std::int64_t world_size() const { return world_size_; }
  /// Returns the views, which are factorisations of the ranks of the mesh.
  [[nodiscard]] const std::vector<Layout>& views() const { return views_; }
  /// Returns the families in the order in which they are listed and opened.
  [[nodiscard]] const std::vector<GroupFamily>& families() const { return families_; }
  /// Returns the family of this name.
  /// @throws UnknownName if no family has this name. The hint lists the names.
  [[nodiscard]] const GroupFamily& groups(std::string_view name) const;
  /// Returns the index of the family of this name in families().
  /// @throws UnknownName if no family has this name. The hint lists the names.
  [[nodiscard]] std::size_t index_of(std::string_view name) const;

  /// Sets the options for the communicators of a family.
  /// @throws UnknownName if no family has this name, or if the parent `split_from` does not exist.
  /// @throws SpecError if a number is out of range, if options exclude each other, or if a key of
  /// `duplicates` is empty or repeated. This exception is also thrown if the parent cannot be split
  /// into the groups of this family.
  void set_options(std::string_view name, GroupOptions options);
  /// Returns the options of a family.
  [[nodiscard]] const GroupOptions& options(std::size_t family) const { return options_[family]; }
  /// Returns the options of all families as text, so that ranks can compare them. The text contains
  /// only the options that differ from their default values.
  [[nodiscard]] std::string options_text() const;

  /// Returns the family whose name is `product`, or the groups along a product of dimensions such
  /// as `dp*tp`. One view must contain all dimensions of the product. The plan need not contain a
  /// family for the product.
  /// @throws UnknownName if no family has this name, if a dimension is unknown or given twice, or
  /// if no view contains all dimensions of the product.
  [[nodiscard]] GroupFamily groups_of_product(std::string_view product) const;

  /// Returns the coordinates of the rank along the dimensions of all views. Each dimension is
  /// listed once. The list is empty if the rank is outside the mesh.
  [[nodiscard]] std::vector<std::pair<std::string, Coordinate>> coordinates(Rank rank) const;
  /// Returns the coordinate of the rank along a dimension.
  /// @throws UnknownName if no view has the dimension; NotMember if the rank is outside every view
  /// that has the dimension.
  [[nodiscard]] Coordinate coordinate(Rank rank, std::string_view dimension) const;
  /// Returns the coordinates as text for messages, for example `pp=1,dp=0,tp=3`, or `outside
  /// the mesh`.
  [[nodiscard]] std::string describe(Rank rank) const;

  /// Returns every group that contains the rank, in the order of the families.
  [[nodiscard]] std::vector<Membership> memberships(Rank rank) const;
  /// Returns the communicators of the rank. Each group of two or more members has one communicator,
  /// and each key of GroupOptions::duplicates adds another communicator. Two groups are equal if
  /// they have the same ranks in the same order. Equal groups of several families share one
  /// communicator if the options of the families allow it (GroupOptions::can_share). Overlapping
  /// families have no communicators.
  [[nodiscard]] std::vector<CommunicatorUse> communicators(Rank rank) const;
  /// Returns whether the communicators of a family need a separate creation step. The step is
  /// needed if a group of two or more members cannot use the communicator of an earlier family. The
  /// result is the same on every rank.
  [[nodiscard]] bool needs_creation(std::size_t family) const;
  /// Returns whether a family has communicators. A family has communicators if its groups do not
  /// overlap and at least one group has two or more members. The result is the same on every rank.
  [[nodiscard]] bool has_communicators(std::size_t family) const;

  /// Returns the leader of a group, which is the member that creates the NCCL unique ID. The rank
  /// in group of the leader is (s + f) mod size. In this formula, f is the index of the family, and
  /// s is the sum of the coordinates that all members have in common. In a family of explicit
  /// lists, s is the number of the group. The formula distributes the leaders over the ranks.
  [[nodiscard]] RankInGroup leader(std::size_t family, std::int64_t group) const;
  /// Returns the number of unique IDs that a communicator of `ranks` ranks needs. The result is 0
  /// if the communicators of the family are split from a parent.
  [[nodiscard]] std::int64_t unique_ids(std::size_t family, std::int64_t ranks) const;

  /// Returns the place of the operations of a family in a batch. The place is the same on every
  /// rank.
  [[nodiscard]] BatchPlace batch_place(std::size_t family) const;

  /// Returns a 128-bit hash of canonical_text(). The hash covers the world size, the views and the
  /// groups, but not the options. The hash is the same on every machine and in every release.
  [[nodiscard]] Hash128 digest() const;
  /// Returns the text that digest() hashes. A table is represented by the hash of its ranks.
  /// docs/design.md describes the format. The text consists of:
  /// - the line `rankmesh.plan/1`
  /// - the world size
  /// - one line per view, with the dimensions in the form name:size:stride
  /// - one line per family, with the groups as strides or lists
  [[nodiscard]] std::string canonical_text() const;

 private:
  void validate_parent(std::size_t family, const std::string& parent_name) const;

  std::int64_t world_size_;
  std::vector<Layout> views_;
  std::vector<GroupFamily> families_;
  std::vector<GroupOptions> options_;  // per family
};

/// Splits a product such as `dp*cp` into its names and removes blanks. If the product is a single
/// name, the result has one element.
RANKMESH_API std::vector<std::string> split_product(std::string_view product);

}  // namespace rankmesh

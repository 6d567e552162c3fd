// SPDX-License-Identifier: BSD-3-Clause
// All groups of a mesh as data: the ranks and the order of the groups, and the communicators that
// serve the groups.
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

/// One group of a rank.
struct Membership {
  std::size_t family = 0;  ///< index into MeshPlan::families()
  GroupIndex place{};
  RankSet ranks;
};

/// One communicator of a rank, and the families that it serves.
struct CommunicatorUse {
  RankSet ranks;
  std::vector<std::size_t> families;  ///< indices into MeshPlan::families()
  /// The key of GroupOptions::duplicates. The key is empty for the first communicator of a group.
  std::string duplicate_key;
};

/// The plan of a mesh: its views, its families and their options. The plan is pure arithmetic, is
/// the same on every rank, and needs no MPI. The memory and the time of each query are O(families x
/// dimensions) for any number of ranks, except for explicit lists and tables of ranks. Several
/// threads can read a plan safely.
class RANKMESH_API MeshPlan {
 public:
  /// Creates a plan.
  /// @param world_size  the number of all ranks of the world, including the ranks outside the mesh.
  /// @param views  the factorisations of the ranks of the mesh.
  /// @param families  the families, in the order in which they are listed and opened.
  /// @throws SpecError if two families have the same name, or if a rank is outside the world.
  MeshPlan(std::int64_t world_size, std::vector<Layout> views, std::vector<GroupFamily> families);

  /// Returns the number of all ranks of the world, including the ranks outside the mesh.
  [[nodiscard]] std::int64_t world_size() const { return world_size_; }
  /// Returns the factorisations of the ranks of the mesh.
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
  /// @throws UnknownName if no family has this name; SpecError if a number in the options is out of
  /// range, if a key of `duplicates` is empty or repeated, or if the parent cannot be split into
  /// these groups.
  void set_options(std::string_view name, GroupOptions options);
  /// Returns the options of a family.
  [[nodiscard]] const GroupOptions& options(std::size_t family) const { return options_[family]; }
  /// Returns all options that differ from the default, as text that ranks can compare. The text is
  /// empty if no option differs.
  [[nodiscard]] std::string options_text() const;

  /// Returns the family of this name, or the groups along a product of dimensions of one view
  /// (`dp*tp`). The plan need not contain a family for the product.
  /// @throws UnknownName if no family has this name, if a dimension is unknown or given twice, or
  /// if no view contains all dimensions of the product.
  [[nodiscard]] GroupFamily groups_of_product(std::string_view product) const;

  /// Returns the coordinates of the rank in all views, and lists each dimension once. The list is
  /// empty if the rank is outside the mesh.
  [[nodiscard]] std::vector<std::pair<std::string, Coordinate>> coordinates(Rank rank) const;
  /// Returns the coordinate of the rank along a dimension.
  /// @throws UnknownName if no view has the dimension; NotMember if the rank is outside the views
  /// that have the dimension.
  [[nodiscard]] Coordinate coordinate(Rank rank, std::string_view dimension) const;
  /// Returns the coordinates as text for messages, for example `pp=1,dp=0,tp=3`, or `outside
  /// the mesh`.
  [[nodiscard]] std::string describe(Rank rank) const;

  /// Returns every group of the rank, in the order of the families.
  [[nodiscard]] std::vector<Membership> memberships(Rank rank) const;
  /// Returns the communicators of the rank. Each distinct group of two or more members has one
  /// communicator, and one more for each key of GroupOptions::duplicates. Equal groups (the same
  /// ranks in the same order) share one communicator if their options allow it. Overlapping
  /// families have no communicators.
  [[nodiscard]] std::vector<CommunicatorUse> communicators(Rank rank) const;
  /// Returns whether the communicators of a family need a separate creation step. They need one if
  /// at least one group has two or more members and no earlier family serves this group. The result
  /// is the same on every rank.
  [[nodiscard]] bool needs_creation(std::size_t family) const;
  /// Returns whether a family has communicators, which is the case if its groups have two or more
  /// members and do not overlap. The result is the same on every rank.
  [[nodiscard]] bool has_communicators(std::size_t family) const;

  /// Returns the leader of a group, which is the member that makes the NCCL unique ID. Its number
  /// is (s + f) mod size. Here s is the sum of the coordinates that all members share in the view
  /// of the family, and f is the index of the family. For explicit lists, s is the number of the
  /// group. This formula spreads the leaders over the ranks.
  [[nodiscard]] RankInGroup leader(std::size_t family, std::int64_t group) const;
  /// Returns the number of unique IDs for a communicator of this many ranks. The result is 0 if the
  /// communicator is split from another communicator.
  [[nodiscard]] std::int64_t unique_ids(std::size_t family, std::int64_t ranks) const;

  /// Returns the place of the operations of a family in a batch. The place is the same on every
  /// rank.
  [[nodiscard]] BatchPlace batch_place(std::size_t family) const;

  /// Returns a 128-bit hash of canonical_text(). The hash covers the world size, the views and the
  /// groups, but not the options. The hash is the same on every machine and in every release.
  [[nodiscard]] Hash128 digest() const;
  /// Returns the text that digest() hashes: the line `rankmesh.plan/1`, the world size, one line
  /// per view with its dimensions (name:size:stride), and one line per family with its groups as
  /// strides or lists. Tables are represented by the hash of their ranks. docs/design.md describes
  /// the format.
  [[nodiscard]] std::string canonical_text() const;

 private:
  void validate_parent(std::size_t family, const std::string& parent_name) const;

  std::int64_t world_size_;
  std::vector<Layout> views_;
  std::vector<GroupFamily> families_;
  std::vector<GroupOptions> options_;  // per family
};

/// Splits a product such as `dp*cp` into its names, and removes blanks. For a single name, the
/// result has one element.
RANKMESH_API std::vector<std::string> split_product(std::string_view product);

}  // namespace rankmesh

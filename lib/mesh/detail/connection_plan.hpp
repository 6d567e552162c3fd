// SPDX-License-Identifier: BSD-3-Clause
// The connections of one rank, and the steps that create them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"

namespace rankmesh::detail {

/// Computes the connections of one rank from the plan of the mesh, without communication.
struct ConnectionPlan {
  /// A coordinator of this rank.
  struct Coordinator {
    std::string name;  ///< The name of the family, or `name[key]` for a duplicate.
    std::size_t group;
  };

  std::vector<GroupDescription> groups;  ///< In the order in which they are created and freed.
  std::vector<Coordinator> coordinators;

  /// @param timeout  The timeout of the operations of those families that set no timeout
  /// themselves.
  ConnectionPlan(const MeshPlan& plan, Rank rank, const Placement& placement,
                 Deadline::Duration timeout);

 private:
  void add_family(const MeshPlan& plan, std::size_t family, Rank rank, const Placement& placement,
                  Deadline::Duration timeout);
  void add_duplicates(const MeshPlan& plan, std::size_t family,
                      const std::optional<GroupIndex>& place, std::optional<std::size_t> group,
                      const Placement& placement);
  void number(std::optional<std::size_t> group);
  std::size_t add_group(std::string name, const RankSet& ranks, std::size_t family,
                        const Placement& placement, Deadline::Duration timeout);

  std::int64_t last_number_ = 0;  // the highest number of a group; the same on all ranks
};

/// Returns the name of a duplicate communicator: `name[key]`.
std::string duplicate_name(std::string_view name, std::string_view key);

/// Returns the options of the first family that contains the group; the
/// defaults for dynamic groups.
const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan);

}  // namespace rankmesh::detail

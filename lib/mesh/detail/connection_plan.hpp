// SPDX-License-Identifier: BSD-3-Clause
// The connections of one rank, and the steps that create them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// The connections of one rank.
struct ConnectionPlan {
  /// A coordinator of this rank.
  struct Coordinator {
    std::string name;  ///< The name of the family, or `name[key]` for a duplicate.
    std::size_t group;
  };

  std::vector<GroupDescription> groups;  ///< In the order in which they are created and freed.
  std::vector<Coordinator> coordinators;
};

/// Computes the connections of this rank from the plan of the mesh, without communication.
ConnectionPlan plan_connections(const MeshPlan& plan, const ControlPlane& control);

/// Describes a group of these ranks, which belongs to no family yet. Local.
GroupDescription describe_group(std::string name, RankSet ranks, const ControlPlane& control);

/// Returns the name of a duplicate communicator: `name[key]`.
std::string duplicate_name(std::string_view name, std::string_view key);

/// Returns the options of the first family that contains the group; the
/// defaults for dynamic groups.
const GroupOptions& options_of(const GroupDescription& group, const MeshPlan& plan);

}  // namespace rankmesh::detail

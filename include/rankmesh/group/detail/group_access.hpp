// SPDX-License-Identifier: BSD-3-Clause
// Access to coordinators for modules that build on groups. Programs must not use it.
#pragma once

#include <memory>
#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

class Connection;

/// Creates coordinators, and gives other modules access to their private parts.
struct RANKMESH_API GroupAccess {
  /// Creates a coordinator on a connection that has all its transports. Local.
  static std::unique_ptr<GroupCoordinator> make(std::string name,
                                                std::shared_ptr<Connection> connection,
                                                std::shared_ptr<MeshRuntime> runtime);
  /// Runs the operation that a `Call` describes; blocks on host memory.
  static void run(GroupCoordinator& group, const Call& call);
  /// Starts the operation that a `Call` describes; does not block.
  /// @param kept  An object that stays alive until the operation is complete.
  [[nodiscard]] static Work start(GroupCoordinator& group, const Call& call,
                                  std::shared_ptr<void> kept = {});
  /// Returns the state that all groups of the mesh share.
  [[nodiscard]] static MeshRuntime& runtime(const GroupCoordinator& group);
  /// Returns the communicator and the transports of the group.
  [[nodiscard]] static Connection& connection(const GroupCoordinator& group);
};

}  // namespace rankmesh::detail

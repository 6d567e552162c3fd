// What modules that build on groups may do with a coordinator, and programs may not.
#pragma once

#include <memory>
#include <string>

#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

class Connection;

struct RANKMESH_API GroupAccess {
  /// Makes a coordinator on a connection that is complete.
  static std::unique_ptr<GroupCoordinator> make(std::string name,
                                                std::shared_ptr<Connection> connection,
                                                std::shared_ptr<MeshRuntime> runtime);
  /// Runs the operation that a call describes; blocks on host memory.
  static void run(GroupCoordinator& group, const Call& call);
  /// Starts it. @param kept  Stays alive until the operation is complete.
  [[nodiscard]] static Work start(GroupCoordinator& group, const Call& call,
                                  std::shared_ptr<void> kept = {});
  [[nodiscard]] static MeshRuntime& runtime(const GroupCoordinator& group);
  [[nodiscard]] static Connection& connection(const GroupCoordinator& group);
};

}  // namespace rankmesh::detail

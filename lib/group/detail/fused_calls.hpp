// Device operations of one mesh that are issued together.
#pragma once

#include "mesh_runtime.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

/// Gathers the device operations of a group's mesh until end(), and issues them as one NCCL group.
/// Where a batch is open already (the caller's NcclGroup), they join it, and that batch issues
/// them. Does nothing where there are no devices.
class FusedCalls {
 public:
  explicit FusedCalls(GroupCoordinator& group);
  ~FusedCalls();
  FusedCalls(const FusedCalls&) = delete;
  FusedCalls& operator=(const FusedCalls&) = delete;
  /// Issues everything. @throws what the operations fail with.
  void end();

 private:
  MeshRuntime* runtime_;  // null where there is nothing to end
};

}  // namespace rankmesh::detail

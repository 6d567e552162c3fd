// SPDX-License-Identifier: BSD-3-Clause
// Device operations of one mesh that are issued together.
#pragma once

#include "mesh_runtime.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::detail {

/// Collects the device operations of a mesh until end(), and issues them as one NCCL group. If
/// the program has already opened an NcclGroup, the operations join it instead. Does nothing if
/// the mesh has no devices.
class FusedCalls {
 public:
  explicit FusedCalls(GroupCoordinator& group);
  ~FusedCalls();
  FusedCalls(const FusedCalls&) = delete;
  FusedCalls& operator=(const FusedCalls&) = delete;
  /// Issues the operations. @throws The exceptions of the operations.
  void end();

 private:
  MeshRuntime* runtime_;  // null if end() has nothing to do
};

}  // namespace rankmesh::detail

// Operations that go out together, for the rooms that build on groups.
#pragma once

#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/channel.hpp"

namespace rankmesh::detail {

/// Begins a batch: operations are gathered until its end. The caller holds the mesh.
/// @throws UsageError where one is open.
void begin_batch(MeshServices& services);
/// Issues what was gathered, in order of their places and, where these are equal, of the calls;
/// device operations as one NCCL group. The first failure keeps the rest from being issued, and is
/// thrown.
void end_batch(MeshServices& services);

/// Gathers the device operations of a group's mesh until end(). Where a batch is open already (the
/// caller's NcclGroup) they join it, and end() leaves the issuing to that. Does nothing where there
/// are no devices.
class RANKMESH_API FusedCalls {
 public:
  explicit FusedCalls(GroupCoordinator& group);
  ~FusedCalls();
  FusedCalls(const FusedCalls&) = delete;
  FusedCalls& operator=(const FusedCalls&) = delete;
  /// Issues everything. @throws what the operations fail with.
  void end();

 private:
  MeshServices* services_;  // null where there is nothing to end
};

}  // namespace rankmesh::detail

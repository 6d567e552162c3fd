// SPDX-License-Identifier: BSD-3-Clause
// A batch: operations that are issued together.
#pragma once

#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Collects operations from its construction to end(), and then issues them together. Operations
/// on device memory become one NCCL group, so sends and receives that depend on each other cannot
/// deadlock, and many small operations cost one launch. On host memory, a batch takes the
/// `_async` forms and issues them one after the other. All members of a group must add the same
/// operations of that group.
///
///     {
///       NcclGroup batch{mesh};
///       mesh["dp"].all_reduce(gradients, stream);
///       mesh["pp"].send(activations, next, 0, stream);
///       mesh["pp"].recv(gradients_of_next, next, 0, stream);
///       mesh["tp"].all_reduce(partial, stream);
///       batch.end();    // issues tp, pp, pp, dp
///     }
///
/// The operations are issued by priority: first those of the family with the lowest
/// GroupOptions::priority. Among families of equal priority, pp comes after all others except dp,
/// and dp comes last. In a file with grids, the last part of the name decides (`encoder.dp` is a
/// dp). Operations of one group keep the order of the calls. So all ranks issue the operations in
/// the same order.
///
/// The operations are ordered after the work that the streams hold when end() is called, even if
/// that work was added after the operation was. The buffers must stay valid until the operations
/// are complete. Wait for a Work of the batch after end(). Until end(), the following calls throw
/// UsageError: blocking operations on host memory, `_async` forms on device memory, and functions
/// of the mesh that open, create or close groups.
///
/// Thread safety: one thread may use the batch. A mesh has at most one open batch.
class RANKMESH_API NcclGroup {
 public:
  /// Opens a batch. Local.
  /// @throws UsageError   Another batch of the mesh is open.
  /// @throws ClosedError  The mesh is closed.
  explicit NcclGroup(Mesh& mesh);
  /// Calls end() if the program has not called it. If end() fails, the next operation of the groups
  /// reports the failure.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Issues all operations of the batch. Returns once NCCL and MPI have accepted them; does not
  /// wait until they are complete.
  /// @throws nccl::NcclError, TimeoutError  The groups are broken afterwards, and the operations
  ///                                        that were not issued yet are dropped.
  void end();

 private:
  detail::MeshState* state_;  // null after end()
};

}  // namespace rankmesh

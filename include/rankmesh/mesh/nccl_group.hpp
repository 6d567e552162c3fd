// SPDX-License-Identifier: BSD-3-Clause
// A batch of operations that are issued together.
#pragma once

#include <memory>

#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Collects operations from its construction to end(), and then issues them together, in ascending
/// order of GroupOptions::priority. Sends and receives that depend on each other cannot deadlock
/// then, and many small operations on device memory need only one launch. All members of a group
/// must add the same collectives of that group, and the receiver of a message its receive.
///
///     {
///       NcclGroup batch{mesh};
///       mesh["dp"].all_reduce(gradients, stream);
///       auto& pp = mesh["pp"];  // a ring; a pipeline ends at its first and its last stage
///       if (!pp.is_last()) pp.send(activations, next, 0, stream);
///       if (!pp.is_first()) pp.recv(activations_of_prev, prev, 0, stream);
///       mesh["tp"].all_reduce(partial, stream);
///       batch.end();
///     }
///
/// Operations of equal priority have no order on devices, so an operation must not use the result
/// of another one of the batch. The buffers must stay valid until the operations are complete. Do
/// not wait for a Work of the batch before end() has returned. docs/exchange.md ("Batches") says
/// what throws UsageError until then.
///
/// Thread safety: only one thread may use a batch. At most one batch of a mesh can be open.
class RANKMESH_API NcclGroup {
 public:
  /// Opens a batch. Local.
  /// @throws UsageError if another batch of the mesh is open.
  /// @throws ClosedError if the mesh is closed.
  explicit NcclGroup(Mesh& mesh);
  /// Calls end() if the program has not called it. If this call fails, the groups are broken, and
  /// their next operation reports the failure.
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// Issues all operations of the batch. Returns once NCCL and MPI have accepted the operations;
  /// does not wait until the operations are complete.
  /// @throws nccl::NcclError if NCCL reports an error; TimeoutError if NCCL does not accept the
  /// operations in time. After either exception, the groups are broken, and operations that were
  /// not issued yet are dropped. If another exception says that an operation cannot be issued,
  /// those after it are dropped, and their groups are broken, except the group of the operation
  /// itself.
  void end();

 private:
  std::shared_ptr<detail::MeshRuntime> runtime_;  // null after end()
};

}  // namespace rankmesh

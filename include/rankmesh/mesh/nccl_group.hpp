// SPDX-License-Identifier: BSD-3-Clause
// A batch of operations that are issued together.
#pragma once

#include "rankmesh/mesh/mesh.hpp"

namespace rankmesh {

/// Collects operations from its construction to end(), and then issues them together. Operations on
/// device memory become one NCCL group for each priority (GroupOptions::priority). Therefore sends
/// and receives that depend on each other cannot deadlock, and many small operations need only one
/// launch. On host memory, a batch accepts only the `_async` forms, and end() issues them one after
/// the other. All members of a group must add the same collectives of that group, and the receiver
/// of a message must add its receive.
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
/// end() issues the operations in ascending order of GroupOptions::priority. On one stream, an
/// operation on device memory therefore runs after the operations of lower priority numbers. Among
/// operations of equal priority, NCCL promises no order: since 2.26 it orders communicators by a
/// hash, it sorts the operations of a communicator by size and function, and operations may share a
/// kernel. Only messages between two ranks keep the order of the calls. Therefore an operation must
/// not use the result of another operation of the batch. A call throws UsageError if its memory
/// overlaps the memory of an earlier call of the batch, and at least one of the two calls writes
/// the common memory. On host memory, families of equal priority are issued in the order of the
/// plan, except that pp and then dp come last (`encoder.dp` is treated as dp).
///
/// An operation runs after all work that is on its stream when end() is called. This includes work
/// that the program has put on the stream after it called the operation. The buffers must stay
/// valid until the operations are complete. Do not wait for a Work of the batch before end() has
/// returned. Until end(), the following calls throw UsageError: blocking operations on host memory,
/// `_async` forms on device memory, operations that share memory as described above, and functions
/// of the mesh that open, create or close groups.
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
  /// not issued yet are dropped.
  void end();

 private:
  detail::MeshState* state_;  // null after end()
};

}  // namespace rankmesh

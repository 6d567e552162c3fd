// SPDX-License-Identifier: BSD-3-Clause
// The handle of an asynchronous operation.
#pragma once

#include <memory>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

namespace detail {
struct AsyncOperation;
struct MeshRuntime;
}  // namespace detail

/// Refers to an operation that an `_async` function has started. The buffers must stay valid until
/// the operation is complete, even if the Work is destroyed: the operation continues, and close()
/// of the mesh waits for it. Copies refer to the same operation.
///
/// Host memory: rankmesh has no helper threads, so an operation makes progress only inside test(),
/// wait(), Mesh::progress() and blocking operations of the mesh. An operation that MPI carries also
/// makes progress inside other calls of MPI. If a program itself calls blocking functions of MPI
/// between the start and the wait, route its asynchronous operations to MPI (docs/routes.md).
/// Otherwise the members that wait for the operation earlier may wait for ever.
///
/// Device memory: the operation runs on the group's own stream, ordered after the work that the
/// caller's stream held when the operation was issued.
///
/// Thread safety: only the thread that uses the mesh may use the Work.
class RANKMESH_API Work {
 public:
  /// Creates a Work that is complete.
  Work() = default;
  /// Refers to an operation. For use by rankmesh only.
  Work(std::shared_ptr<detail::AsyncOperation> operation,
       std::shared_ptr<detail::MeshRuntime> runtime)
      : operation_{std::move(operation)}, runtime_{std::move(runtime)} {}

  /// Makes progress. Returns true once the operation is complete. Never blocks.
  /// @throws  It throws the exception with which the operation failed.
  [[nodiscard]] bool test();
  /// Waits for the operation. On host memory, it blocks until the operation is complete, at most
  /// for the mesh's timeout. On device memory, it makes the stream that was passed to the operation
  /// wait for the operation; the host does not wait.
  /// @throws TimeoutError  The error names the missing ranks. The group is broken afterwards.
  void wait();
  /// Blocks the host until the operation is complete, on host and on device memory.
  /// @param timeout  In seconds.
  /// @throws TimeoutError  The error names the missing ranks. The group is broken afterwards.
  void wait(Deadline::Duration timeout);

 private:
  std::shared_ptr<detail::AsyncOperation> operation_;  // null: complete
  std::shared_ptr<detail::MeshRuntime> runtime_;
};

/// Refers to an operation and owns the container that was moved into it.
template <class Memory>
class OwningWork : public Work {
 public:
  OwningWork(Work work, std::shared_ptr<Memory> memory)
      : Work{std::move(work)}, memory_{std::move(memory)} {}
  /// Waits until the operation is complete, at most for the mesh's timeout, and returns the
  /// container. Call take() only once.
  [[nodiscard]] Memory take() {
    wait();
    return std::move(*memory_);
  }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace rankmesh

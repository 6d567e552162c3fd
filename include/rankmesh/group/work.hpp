// An operation that was started.
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

/// The handle that an `_async` operation returns. Its buffers must stay valid until the operation
/// is complete, also when the Work itself is dropped: the operation goes on, and the mesh keeps it
/// until close(). Copies refer to the same operation.
///
/// Host memory: nothing runs by itself. An operation makes progress inside test(), wait() and
/// Mesh::progress(), and inside MPI's own calls where MPI carries it. An operation in shared memory
/// makes progress only inside calls of rankmesh that wait. So a program that blocks in MPI calls of
/// its own between the start and the wait, while its peers wait first, should route its
/// asynchronous operations to MPI.
///
/// Device memory: the operation runs on the group's own stream, ordered after the work that the
/// caller's stream held when the operation was issued.
///
/// Thread safety: one thread, the one that uses the mesh.
class RANKMESH_API Work {
 public:
  /// Makes one that is complete.
  Work() = default;
  /// Used by rankmesh.
  Work(std::shared_ptr<detail::AsyncOperation> operation,
       std::shared_ptr<detail::MeshRuntime> runtime)
      : operation_{std::move(operation)}, runtime_{std::move(runtime)} {}

  /// Makes progress. Returns true once the operation is complete. Never blocks.
  /// @throws what the operation failed with.
  [[nodiscard]] bool test();
  /// Host memory: returns when the operation is complete; waits at most for the mesh's timeout.
  /// Device memory: makes the stream that the operation was called with wait for it; the host does
  /// not wait.
  /// @throws TimeoutError naming the missing ranks, after which the group is broken.
  void wait();
  /// Waits on the host until the operation is complete, on host and device memory alike.
  /// @throws TimeoutError naming the missing ranks, after which the group is broken.
  void wait(Deadline::Duration timeout);

 private:
  std::shared_ptr<detail::AsyncOperation> operation_;  // null: complete
  std::shared_ptr<detail::MeshRuntime> runtime_;
};

/// A Work whose buffer was moved in: the buffer lives here until it is taken back.
template <class Memory>
class OwningWork : public Work {
 public:
  OwningWork(Work work, std::shared_ptr<Memory> memory)
      : Work{std::move(work)}, memory_{std::move(memory)} {}
  /// Waits until the operation is complete, at most for the mesh's timeout, and returns the buffer.
  /// Call it once.
  [[nodiscard]] Memory take() {
    wait();
    return std::move(*memory_);
  }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace rankmesh

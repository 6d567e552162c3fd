// SPDX-License-Identifier: BSD-3-Clause
// The handle of an asynchronous operation.
#pragma once

#include <memory>
#include <type_traits>
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
/// the operation is complete. If the program destroys the Work earlier, the operation continues,
/// and Mesh::close() waits for it; receives on host memory for which no message has arrived are
/// cancelled. Copies of a Work refer to the same operation.
///
/// Host memory: rankmesh has no helper threads, so an operation makes progress only inside test(),
/// wait(), Mesh::progress() and blocking operations of the mesh. An operation that MPI carries out
/// also makes progress inside calls of MPI. A program that calls blocking MPI functions itself
/// before it waits for an operation should route its asynchronous operations to MPI
/// (docs/routes.md). Otherwise other members may wait for the operation for ever. In a group inside
/// one node, MPI makes progress for at most 32 operations at a time (fewer for v-forms of large
/// groups, see docs/shared-memory.md). Further operations make progress only inside calls of
/// rankmesh, like operations in shared memory.
///
/// Device memory: the operation runs on the group's own stream. It runs after the work that was on
/// the caller's stream when the operation was issued.
///
/// Thread safety: only the thread that uses the mesh may use the Work.
class RANKMESH_API Work {
 public:
  /// Creates a Work that is already complete.
  Work() = default;
  /// Creates a Work that refers to `operation`. For use by rankmesh only.
  Work(std::shared_ptr<detail::AsyncOperation> operation,
       std::shared_ptr<detail::MeshRuntime> runtime)
      : operation_{std::move(operation)}, runtime_{std::move(runtime)} {}

  /// Makes progress. Returns true once the operation is complete. Never blocks.
  /// @throws the exception with which the operation failed.
  [[nodiscard]] bool test();
  /// Waits for the operation. On host memory, blocks until the operation is complete, at most for
  /// the mesh's timeout. On device memory, makes the stream that was passed to the operation wait
  /// for the operation; the host does not wait.
  /// @throws TimeoutError if the mesh's timeout passes. The error names the missing ranks, and the
  /// group is broken afterwards.
  void wait();
  /// Blocks the host until the operation is complete, even if the operation is on device memory.
  /// @param timeout  The time limit in seconds.
  /// @throws TimeoutError if `timeout` passes. The error names the missing ranks, and the group is
  /// broken afterwards.
  void wait(Deadline::Duration timeout);
  /// Cancels a receive on host memory. If no message has been matched with the receive, the receive
  /// ends at once. Its buffer is unchanged and may be used again, and a later receive gets the
  /// message. If a message has been matched with the receive, blocks until the whole message has
  /// arrived. In both cases the operation is complete afterwards. Local; does not involve the
  /// sender.
  /// @return Whether the receive was cancelled. If not, the buffer holds the message.
  /// @throws UsageError if the operation is not a receive on host memory. Other operations cannot
  /// be cancelled: other members take part in a collective, a message that was sent cannot be taken
  /// back, and NCCL has no cancellation. The operation continues.
  /// @throws the exception with which the operation failed.
  bool cancel();
  /// Refuses a time limit without a unit, at compile time.
  template <class Number>
    requires std::is_arithmetic_v<Number>
  RANKMESH_REFUSE("a time limit has a unit: write wait(std::chrono::seconds{3})") void wait(
      Number) {}

 private:
  std::shared_ptr<detail::AsyncOperation> operation_;  // null if the operation is complete
  std::shared_ptr<detail::MeshRuntime> runtime_;
};

/// Refers to an operation and owns the container that was moved into it.
template <class Memory>
class OwningWork : public Work {
 public:
  /// Keeps `memory` alive until the operation is complete. Operations call this constructor.
  OwningWork(Work work, std::shared_ptr<Memory> memory)
      : Work{std::move(work)}, memory_{std::move(memory)} {}
  /// Waits for the operation as wait() does, and then returns the container. Call take() only once.
  [[nodiscard]] Memory take() {
    wait();
    return std::move(*memory_);
  }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace rankmesh

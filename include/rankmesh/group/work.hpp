// SPDX-License-Identifier: BSD-3-Clause
// The handle of an asynchronous operation.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

namespace detail {
struct AsyncOperation;
struct MeshRuntime;
struct WorkAccess;
}  // namespace detail

/// Refers to an operation that an `_async` function has started. The buffers must stay valid until
/// the operation is complete. If the program destroys the Work earlier, the operation continues,
/// and Mesh::close() waits for it; receives on host memory for which no message has arrived are
/// cancelled. Copies of a Work refer to the same operation.
///
/// Host memory: no helper thread carries out operations. An operation makes progress while the
/// thread that has issued it waits in rankmesh, whatever it waits for and in whatever mesh, and in
/// every test() of any Work of this thread (docs/waits.md). docs/routes.md ("Progress") says which
/// operations also make progress inside calls of MPI.
///
/// Device memory: the operation runs on the group's own stream, after the work that was on the
/// caller's stream when the operation was issued.
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

  /// Returns true once the operation is complete. Never blocks. If it is not complete, a few other
  /// operations of this thread make progress, too, in all its meshes. In a loop that only tests,
  /// the process lets others have the core, so the loop needs no pause.
  /// @throws the exception with which the operation failed.
  [[nodiscard]] bool test();
  /// Waits for the operation. On host memory, blocks until the operation is complete, at most for
  /// the deadline of the mesh, or, if it has none, for its timeout. On device memory, makes the
  /// stream that was passed to the operation wait for the operation; the host does not wait.
  /// @throws TimeoutError if this limit passes. The error names the missing ranks, and the group is
  /// broken afterwards.
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
  friend struct detail::WorkAccess;
  [[nodiscard]] bool test_alone();

  std::shared_ptr<detail::AsyncOperation> operation_;  // null if the operation is complete
  std::shared_ptr<detail::MeshRuntime> runtime_;
};

/// Waits until one of several operations is complete. The operations may belong to different groups
/// and meshes of this thread. Blocks the host, also for operations on device memory.
/// @param works  Works that refer to no operation are left out: default ones, and those that an
/// earlier call has returned. So a loop gets each operation once.
/// @param timeout  The time limit in seconds.
/// @return The index of the Work whose operation is complete; the Work refers to no operation
/// afterwards. Nothing if no Work refers to an operation.
/// @throws the exception with which one of the operations failed. Its Work refers to no operation
/// afterwards, so the next call waits for the other ones.
/// @throws UsageError if one of the operations belongs to an NcclGroup that has not ended.
/// @throws TimeoutError if no operation is complete when `timeout` passes, or if a rank that one of
/// them needs has ended or given up. The operations continue.
[[nodiscard]] RANKMESH_API std::optional<std::size_t> wait_any(std::span<Work> works,
                                                               Deadline::Duration timeout);
/// Does the same, with the limit of Work::wait() in the mesh of the first operation.
[[nodiscard]] RANKMESH_API std::optional<std::size_t> wait_any(std::span<Work> works);

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

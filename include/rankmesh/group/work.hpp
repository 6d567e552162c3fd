// An operation that is under way.
#pragma once

#include <memory>
#include <utility>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"

namespace rankmesh {

namespace detail {
struct InFlight;
}

/// What an `_async` operation returns. Its buffers must stay valid until it is complete, also where
/// the Work itself is dropped: the operation goes on, and the mesh remembers it until close().
///
/// On host memory nothing runs by itself: it progresses inside test(), wait() and Mesh::progress(),
/// and inside MPI's own calls where MPI carries it. What shared memory carries progresses in calls
/// of rankmesh alone (all of them that wait): a program that blocks in MPI calls of its own between
/// the start and the wait, and whose peers wait first, routes its asynchronous operations to MPI.
/// On device memory it runs on the group's own stream, ordered after what the caller's stream held
/// when it was issued. Copies are the same operation. One thread, that of the mesh.
class RANKMESH_API Work {
 public:
  /// One that is complete.
  Work() = default;
  explicit Work(std::shared_ptr<detail::InFlight> state) : state_{std::move(state)} {}

  /// Makes progress; true once the operation is complete. Never blocks. @throws what the operation
  /// failed with.
  [[nodiscard]] bool test();
  /// Host memory: returns when the operation is complete, with the mesh's timeout. Device memory:
  /// the stream that the operation was called with waits for it, and the host does not.
  /// @throws TimeoutError naming the missing ranks, after which the group is broken.
  void wait();
  /// The host waits until the operation is complete, on host and device memory alike. @throws
  /// TimeoutError.
  void wait(Deadline::Duration timeout);

 private:
  std::shared_ptr<detail::InFlight> state_;  // null: complete
};

/// The same for a buffer that was given away: it lives here until it is taken back.
template <class Memory>
class OwningWork : public Work {
 public:
  OwningWork(Work work, std::shared_ptr<Memory> memory)
      : Work{std::move(work)}, memory_{std::move(memory)} {}
  /// The buffer, once the operation is complete; waits for it with the mesh's timeout. Once.
  [[nodiscard]] Memory take() {
    wait();
    return std::move(*memory_);
  }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace rankmesh

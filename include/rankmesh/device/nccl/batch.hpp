// Calls that NCCL carries out together.
#pragma once

#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Between begin() and end() calls are gathered (ncclGroupStart, ncclGroupEnd); none is settled
/// before the end. NCCL's groups are the thread's, whatever the communicator: one at a time in a
/// thread, over all meshes.
class RANKMESH_API Batch {
 public:
  explicit Batch(const Library& library) : library_{&library} {}
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// @throws UsageError where a batch other than `mine` is open in this thread: what is called now
  /// would wait for its end.
  static void require_no_other(const Batch* mine);
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  void begin();
  /// A communicator that has a call in the batch.
  void add(Communicator& comm);
  /// Issues everything, then polls all communicators of the batch. Afterwards it is closed,
  /// whatever is thrown.
  /// @throws NcclError, TimeoutError.
  void end(const Deadline& deadline);
  /// The communicators of the batch that is open, or was ended last.
  [[nodiscard]] const std::vector<Communicator*>& members() const noexcept { return members_; }

 private:
  const Library* library_;
  bool open_ = false;
  std::vector<Communicator*> members_;
};

}  // namespace rankmesh::nccl

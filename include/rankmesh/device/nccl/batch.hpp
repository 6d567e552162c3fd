// Calls that NCCL carries out together.
#pragma once

#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Between begin() and end() calls are gathered (ncclGroupStart, ncclGroupEnd); none is settled before the
/// end. One per mesh; does not nest.
class RANKMESH_API Batch {
 public:
  explicit Batch(const Library& library) : library_{&library} {}
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  void begin();
  /// A communicator that has a call in the batch.
  void add(Communicator& comm);
  /// Issues everything, then polls all communicators of the batch. Afterwards it is closed, whatever is
  /// thrown.
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

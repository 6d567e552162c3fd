// Calls that NCCL carries out together.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Between begin() and end() calls are gathered (ncclGroupStart, ncclGroupEnd); none is settled
/// before the end. NCCL's groups are the thread's, whatever the communicator: one at a time in a
/// thread, over all meshes.
class RANKMESH_API Batch final : public DeviceBatch {
 public:
  Batch(const Library& library, device::Claim claim)
      : library_{&library}, claim_{std::move(claim)} {}
  ~Batch() override;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// @throws UsageError where a batch other than `mine` is open in this thread: what is called now
  /// would wait for its end.
  static void require_no_other(const Batch* mine);
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  void begin() override;
  /// A communicator that has a call in the batch.
  void add(Communicator& comm);
  /// Issues everything, then polls all communicators of the batch. Afterwards it is closed,
  /// whatever is thrown.
  /// @throws NcclError, TimeoutError.
  void end(const Deadline& deadline) override;
  /// Gives up its claim on the device. Nothing may be begun afterwards.
  void release() { claim_ = {}; }

 private:
  const Library* library_;
  device::Claim claim_;
  bool open_ = false;
  std::vector<Communicator*> members_;
};

}  // namespace rankmesh::nccl

// SPDX-License-Identifier: BSD-3-Clause
// NCCL's groups of calls.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Issues the calls between begin() and end() together (ncclGroupStart, ncclGroupEnd). NCCL has one
/// such group per thread for all communicators, so only one batch can be open in a thread, even if
/// the thread uses several meshes.
class RANKMESH_API Batch final : public DeviceBatch {
 public:
  Batch(const Library& library, device::Claim claim)
      : library_{&library}, claim_{std::move(claim)} {}
  ~Batch() override;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// Throws UsageError if a batch other than `mine` is open in this thread: NCCL would defer the
  /// next call to the end of that batch.
  static void require_no_other(const Batch* mine);
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  /// Opens the batch. @throws UsageError  A batch is already open in this thread.
  void begin() override;
  /// Adds a communicator that has a call in the batch.
  void add(Communicator& comm);
  /// Issues the calls, then polls all communicators of the batch until they are ready. The batch is
  /// closed afterwards, also after an exception.
  /// @throws NcclError, TimeoutError.
  void end(const Deadline& deadline) override;
  /// Ends the reservation of the device. No batch may begin afterwards.
  void release() { claim_ = {}; }

 private:
  const Library* library_;
  device::Claim claim_;
  bool open_ = false;
  std::vector<Communicator*> members_;
};

}  // namespace rankmesh::nccl

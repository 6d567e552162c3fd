// SPDX-License-Identifier: BSD-3-Clause
// Calls that are issued together in one NCCL group.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::nccl {

/// Issues all calls that are made between begin() and end() together (ncclGroupStart,
/// ncclGroupEnd). In NCCL, a thread has one group of calls for all its communicators. Therefore
/// only one batch can be open in a thread, even if the thread uses several meshes.
class RANKMESH_API Batch final : public DeviceBatch {
 public:
  Batch(const Library& library, device::Claim claim)
      : library_{&library}, claim_{std::move(claim)} {}
  ~Batch() override;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// Throws UsageError if a batch other than `mine` is open in this thread, because NCCL would
  /// defer the next call to the end of the open batch.
  static void require_no_other(const Batch* mine);
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  /// Opens the batch.
  /// @throws UsageError if a batch is already open in this thread.
  void begin() override;
  /// Adds a communicator that is used by a call in the batch.
  void add(Communicator& comm);
  /// Issues the calls, and then polls all communicators of the batch until they are ready. The
  /// batch is closed afterwards, even after an exception.
  /// @throws NcclError if a call fails; TimeoutError if a communicator is not ready by the
  /// deadline; UsageError if another thread is issuing work for the device.
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

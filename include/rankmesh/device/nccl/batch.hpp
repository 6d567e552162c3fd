// SPDX-License-Identifier: BSD-3-Clause
// Calls that are issued together in one NCCL group.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/device/nccl/call_watch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"

namespace rankmesh::detail {
class ControlPlane;
}

namespace rankmesh::nccl {

/// Issues all calls that are made between begin() and end() together (ncclGroupStart,
/// ncclGroupEnd). In NCCL, a thread has one group of calls for all its communicators. Therefore
/// only one batch can be open in a thread, even if the thread uses several meshes.
class RANKMESH_API Batch final : public DeviceBatch {
 public:
  /// Creates a batch of a mesh for the claimed device. `library` and `watch` must outlive it.
  /// Local.
  Batch(const Library& library, device::Claim claim, CallWatch& watch,
        std::shared_ptr<rankmesh::detail::ControlPlane> control)
      : library_{&library},
        claim_{std::move(claim)},
        watch_{&watch},
        control_{std::move(control)} {}
  ~Batch() override;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  /// Throws UsageError if a batch other than `mine` is open in this thread, because NCCL would
  /// defer the next call to the end of the open batch.
  static void require_no_other(const Batch* mine);
  /// Returns whether an NCCL group is open.
  [[nodiscard]] bool is_open() const noexcept { return open_; }
  /// Opens the batch.
  /// @throws UsageError if a batch is already open in this thread.
  void begin() override;
  /// Adds a communicator. Call add() before each call that the batch collects. If the earlier calls
  /// use communicators of the other mode, issues these calls first, in an NCCL group of their own.
  /// In an NCCL group with blocking and non-blocking communicators, the mode of the last
  /// communicator decides how the group is issued, and a blocking communicator may stay in progress
  /// for ever (ncclGroupCommJoin in src/include/group.h, groupLaunch in src/group.cc).
  void add(Communicator& comm);
  /// Lets the batch issue its calls in relaxed capture mode; NCCL may ask about an event.
  void relax() noexcept { is_relaxed_ = true; }
  /// Issues the calls. Returns when NCCL has accepted them. The batch is closed afterwards, even
  /// after an exception.
  /// @throws NcclError if a call fails; TimeoutError if a communicator is not ready by the
  /// deadline; UsageError if another thread is issuing work for the device.
  void end(const Deadline& deadline) override;
  /// Ends the reservation of the device. No batch may begin afterwards.
  void release() { claim_ = {}; }

 private:
  void issue(Deadline::Duration limit);

  const Library* library_;
  device::Claim claim_;
  CallWatch* watch_;
  std::shared_ptr<rankmesh::detail::ControlPlane> control_;
  bool open_ = false;
  bool is_relaxed_ = false;
  std::vector<Communicator*> members_;  // all have the same mode
};

}  // namespace rankmesh::nccl

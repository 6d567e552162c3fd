// SPDX-License-Identifier: BSD-3-Clause
// Operations that are collected and issued together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch_memory.hpp"
#include "connection.hpp"
#include "operations_in_flight.hpp"
#include "rankmesh/base/call_descriptor.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/transport/call.hpp"
#include "slow_path_reasons.hpp"
#include "transport/detail/kept_call.hpp"

namespace rankmesh::detail {

class CallDispatcher;

/// A call that is issued at the end of its batch.
class DeferredCall {
 public:
  /// Copies the call and its blocks, because the caller may destroy the blocks
  /// before the end of the batch.
  /// @param operation   The asynchronous operation of a call on host memory; null for other calls.
  DeferredCall(const Call& call, CallDispatcher& dispatcher, BatchPlace place,
               std::shared_ptr<AsyncOperation> operation);

  [[nodiscard]] const BatchPlace& place() const { return place_; }
  [[nodiscard]] const Call& call() const { return kept_->call; }
  [[nodiscard]] CallDispatcher& dispatcher() const { return *dispatcher_; }
  [[nodiscard]] const std::shared_ptr<AsyncOperation>& operation() const { return operation_; }

 private:
  std::unique_ptr<const KeptCall> kept_;
  CallDispatcher* dispatcher_;
  BatchPlace place_;
  std::shared_ptr<AsyncOperation> operation_;
};

/// The batch of a mesh. A mesh has at most one open batch.
class OpenBatch {
 public:
  /// @param device  NCCL's group around the batch; null if the mesh has no devices.
  OpenBatch(std::shared_ptr<DeviceBatch> device, SlowPathReasons& reasons)
      : device_{std::move(device)}, reasons_{reasons} {}

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Returns whether the batch can contain device operations.
  [[nodiscard]] bool has_devices() const { return device_ != nullptr; }
  /// Opens the batch. @throws UsageError if a batch is already open.
  void begin();
  /// Reserves the memory of a call that is about to be deferred.
  /// @throws UsageError  It overlaps memory of another call of the batch, and one of the two calls
  ///                     writes it. Nothing is reserved then.
  void reserve_memory(const Call& call, const CallDispatcher& dispatcher);
  void defer(DeferredCall call) { deferred_.push_back(std::move(call)); }
  /// Returns how many collectives on host memory of a connection the batch contains.
  [[nodiscard]] std::uint64_t calls_of(const Connection& connection) const;
  /// Issues the deferred calls, ordered by the places of their groups and then by the order of the
  /// calls. Device operations of groups with the same priority become one NCCL group. After a
  /// failure, the remaining calls are not issued, other groups that have such calls are broken, and
  /// the failure is thrown.
  void end(const Deadline& deadline);
  /// Issues calls on device memory of one group in an NCCL group of their own. No batch is open.
  void issue_together(std::vector<DeferredCall> calls, const Deadline& deadline);

  /// Gives up the deferred calls: the mesh is destroyed while the batch is open.
  /// @param uses_devices  Whether this process may call NCCL: a child that was forked may not.
  void abandon(const std::string& why, bool uses_devices) noexcept;

 private:
  void forget_memory();
  // NCCL's group is open, and is closed afterwards.
  void issue(std::vector<DeferredCall> calls, const Deadline& deadline);

  std::shared_ptr<DeviceBatch> device_;
  SlowPathReasons& reasons_;
  bool is_open_ = false;
  std::vector<DeferredCall> deferred_;
  // A call that has reserved memory, for messages.
  struct Reserved {
    CallDescriptor call;
    const CallDispatcher* dispatcher;
  };
  std::vector<Reserved> reserved_;
  BatchMemory memory_;
};

}  // namespace rankmesh::detail

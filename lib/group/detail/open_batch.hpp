// Operations that are gathered and issued together.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "operations_in_flight.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/transport/call.hpp"
#include "slow_path_reasons.hpp"

namespace rankmesh::detail {

class CallDispatcher;

/// A call that is issued at the end of its batch.
class DeferredCall {
 public:
  /// Copies the call and its blocks: the caller's blocks may be gone by then.
  /// @param operation   For operations on host memory, which are asynchronous; else null.
  DeferredCall(const Call& call, CallDispatcher& dispatcher, BatchPlace place,
               std::shared_ptr<AsyncOperation> operation);

  [[nodiscard]] const BatchPlace& place() const { return place_; }
  [[nodiscard]] Call call() const;
  [[nodiscard]] CallDispatcher& dispatcher() const { return *dispatcher_; }
  [[nodiscard]] const std::shared_ptr<AsyncOperation>& operation() const { return operation_; }

 private:
  Call call_;
  std::optional<Blocks> in_blocks_, out_blocks_;
  CallDispatcher* dispatcher_;
  BatchPlace place_;
  std::shared_ptr<AsyncOperation> operation_;
};

/// The one batch that a mesh may have open.
class OpenBatch {
 public:
  /// @param device  NCCL's group around the batch; null where the mesh has no devices.
  OpenBatch(std::shared_ptr<DeviceBatch> device, SlowPathReasons& reasons)
      : device_{std::move(device)}, reasons_{reasons} {}

  [[nodiscard]] bool is_open() const { return is_open_; }
  /// Whether device operations can be gathered at all.
  [[nodiscard]] bool has_devices() const { return device_ != nullptr; }
  /// @throws UsageError when a batch is open already.
  void begin();
  void defer(DeferredCall call) { deferred_.push_back(std::move(call)); }
  /// Issues the deferred calls in the order of their places and, where these are equal, of the
  /// calls; device operations as one NCCL group. The first failure keeps the rest from being
  /// issued, and is thrown.
  void end(const Deadline& deadline);

 private:
  std::shared_ptr<DeviceBatch> device_;
  SlowPathReasons& reasons_;
  bool is_open_ = false;
  std::vector<DeferredCall> deferred_;
};

}  // namespace rankmesh::detail

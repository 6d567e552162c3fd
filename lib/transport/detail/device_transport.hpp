// SPDX-License-Identifier: BSD-3-Clause
// The interface of transports for device memory, without the headers of CUDA and NCCL.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/transport/bootstrap_report.hpp"
#include "routed_transport.hpp"

struct ncclComm;  // what an ncclComm_t points to

namespace rankmesh {

/// Carries operations on device memory. run() queues the call on the call's stream. start() queues
/// it on the group's own stream, after the work that is on the call's stream.
class DeviceTransport : public RoutedTransport {
 public:
  [[nodiscard]] record::Carrier carrier() const override { return record::Carrier::nccl; }
  /// Returns an object that is complete once the work that is on the stream now has ended; null if
  /// the stream is being captured into a graph.
  [[nodiscard]] virtual std::unique_ptr<Pending> end_of(StreamRef stream) = 0;
  /// Returns the NCCL communicator; null in a group of one, and after it was aborted.
  [[nodiscard]] virtual ncclComm* native() const { return nullptr; }
  /// Returns the group's own stream; the first call creates it.
  [[nodiscard]] virtual StreamRef stream() = 0;
  /// Blocks the host until the stream is idle.
  /// @param look  Called at each poll; what it throws ends the wait.
  /// @throws nccl::NcclError  The communicator has failed meanwhile.
  /// @throws TimeoutError
  virtual void wait(StreamRef stream, const Deadline& deadline,
                    const std::function<void()>& look) = 0;
  /// Queues work on the group's own stream, after the work that `stream` holds now. Returns an
  /// object that is complete once the device has ended this work, and that throws if NCCL fails.
  /// @param queue  Gets the group's own stream.
  [[nodiscard]] virtual std::unique_ptr<Pending> queue_after(
      StreamRef stream, const std::function<void(StreamRef)>& queue) = 0;
  /// Notes that memory is registered with the communicator until that ends.
  virtual void note_registered(const std::byte* memory, std::size_t bytes) {
    (void)memory, (void)bytes;
  }
  /// Returns whether memory at this address was noted as registered.
  [[nodiscard]] virtual bool is_registered(const std::byte* address) const {
    (void)address;
    return false;
  }
  /// Returns how the communicator was created; null if there is none.
  [[nodiscard]] virtual const BootstrapReport* bootstrap() const { return nullptr; }
};

}  // namespace rankmesh

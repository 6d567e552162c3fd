// What a group can do on device memory, without CUDA's or NCCL's headers.
#pragma once

#include "rankmesh/base/deadline.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/transport/bootstrap_report.hpp"
#include "rankmesh/transport/transport.hpp"

struct ncclComm;  // what an ncclComm_t points to

namespace rankmesh {

/// A transport for device memory. run() queues the call on the call's stream; start() queues it on
/// the group's own stream, behind what the call's stream holds.
class DeviceTransport : public Transport {
 public:
  /// Returns the NCCL communicator; null in a group of one, and after it was aborted.
  [[nodiscard]] virtual ncclComm* native() const = 0;
  /// Returns the group's own stream, which is made when it is first asked for.
  [[nodiscard]] virtual StreamRef stream() = 0;
  /// Waits on the host until the stream has run everything that it holds.
  /// @throws nccl::NcclError when the communicator has failed meanwhile; TimeoutError.
  virtual void wait(StreamRef stream, const Deadline& deadline) = 0;
  /// Returns how the communicator was made; null where there is none.
  [[nodiscard]] virtual const BootstrapReport* bootstrap() const = 0;
};

}  // namespace rankmesh

// Device memory over NCCL.
#pragma once

#include "rankmesh/device/captured_graphs.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/transport/transport.hpp"

namespace rankmesh {

/// Every operation on device memory, put on the call's stream. `run` returns once NCCL has taken
/// the operation (the communicator is settled), or, inside a batch, once it is part of that; the
/// stream, not the host, waits for its end. gather, scatter and all_to_all are grouped sends and
/// receives. A barrier is refused: it is the host that waits at one. One thread at a time per
/// device, over all meshes.
///
/// Blocks along another axis are packed or unpacked on the stream, in memory that is allocated and
/// freed in its order.
///
/// NCCL has no 16-bit integers: they are moved as bytes and not reduced.
class NcclTransport final : public Transport {
 public:
  /// @param rank, size  of this process in the group.
  /// @param batch, graphs  of the mesh.
  NcclTransport(nccl::Communicator& comm, int rank, int size, device::Claim claim,
                Deadline::Duration timeout, nccl::Batch& batch, device::CapturedGraphs& graphs)
      : comm_{comm},
        rank_{rank},
        size_{size},
        claim_{std::move(claim)},
        timeout_{timeout},
        batch_{batch},
        graphs_{graphs} {}

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void validate(const Call& call) const override;
  void run(const Call& call) override;
  /// Complete when the stream has run it.
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;

 private:
  void run_along_axis(const Call& call);

  nccl::Communicator& comm_;
  int rank_, size_;
  device::Claim claim_;
  Deadline::Duration timeout_;
  nccl::Batch& batch_;
  device::CapturedGraphs& graphs_;
};

/// Groups of one on device memory: copies on the call's stream.
class LocalDeviceTransport final : public Transport {
 public:
  [[nodiscard]] std::string_view name() const override { return "local device"; }
  [[nodiscard]] bool supports(const Call& call) const override;
  void run(const Call& call) override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The NCCL communicators of one mesh.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device_backend.hpp"
#include "rankmesh/device/nccl/symmetric_memory.hpp"
#include "transport/detail/nccl_context.hpp"
#include "transport/detail/nccl_transport.hpp"

namespace rankmesh::detail {

/// Opens and closes the NCCL communicators of a mesh. The connections own the communicators; this
/// class owns the state that all of them share.
class NcclBackend final : public DeviceBackend {
 public:
  /// @param compute_capabilities  Of the device of each rank of the mesh; see device::Identity.
  NcclBackend(const nccl::Library& library, device::Claim claim,
              std::vector<int> compute_capabilities, std::shared_ptr<ControlPlane> control);
  /// Gives the device back, also where the program still holds groups or Works.
  ~NcclBackend() override;

  [[nodiscard]] int device() const override { return device_; }
  [[nodiscard]] std::shared_ptr<DeviceBatch> batch() const override { return context_->batch; }
  OpenedDevices open(const DeviceOpening& wanted, const Participants& participants) override;
  std::unique_ptr<DeviceTransport> open_alone(const GroupDescription& group) override;
  std::unique_ptr<DeviceTransport> adopt(const GroupDescription& group,
                                         const mpi::CommunicatorView& comm, ncclComm* native,
                                         bool blocks) override;
  void drain(const Deadline& deadline) override;
  [[nodiscard]] std::string living_graphs(const GroupDescription* only) const override;
  void quiesce(Connections connections, const Deadline& deadline) override;
  void close(Connection& connection, const Deadline& deadline) override;
  void close(Connections connections, const Deadline& deadline) override;
  void watch(std::function<std::string()> reason, Deadline::Duration limit) override;
  void require_working() const override;
  std::string abort() noexcept override;
  std::string abort(Connection& connection) noexcept override;
  std::byte* allocate_symmetric(std::size_t bytes, Agreement agreement,
                                Connections connections) override;

 private:
  void abort_broken(Connections connections) noexcept;
  void finalize(std::span<nccl::Communicator* const> comms, const Deadline& deadline);
  void leak_symmetric() noexcept;

  const nccl::Library& library_;
  int device_;
  std::shared_ptr<ControlPlane> control_;
  std::shared_ptr<NcclContext> context_;
  /// Symmetric memory, which is freed after its communicators are closed.
  std::vector<std::unique_ptr<nccl::SymmetricMemory>> symmetric_;
  std::uint64_t attempts_ = 0;  ///< Distinguishes an opening from an earlier one that failed.
};

/// Returns the connection's NCCL transport; null if it has none.
[[nodiscard]] NcclTransport* nccl_transport_of(const Connection& connection);

/// Opens the communicators of one step; see DeviceBackend::open().
/// @param attempt  The number of the step, the same on all ranks. It keeps a verdict about an
///                 earlier attempt from ending a later one.
OpenedDevices open_nccl(const DeviceOpening& wanted, const Participants& participants,
                        std::shared_ptr<NcclContext> context, ControlPlane& control,
                        std::uint64_t attempt);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// The transport for device memory over NCCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device_transport.hpp"
#include "nccl_context.hpp"
#include "rankmesh/device/nccl/communicator.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh {

/// What the transports for device memory have in common: the group's own stream, and the ends of
/// work on streams.
class StreamTransport : public DeviceTransport {
 public:
  [[nodiscard]] bool supports(const Call& call) const override;
  [[nodiscard]] std::unique_ptr<Pending> start(const Call& call) override;
  [[nodiscard]] std::unique_ptr<Pending> end_of(StreamRef stream) override;
  [[nodiscard]] StreamRef stream() override;
  void wait(StreamRef stream, const Deadline& deadline, const std::function<void()>& look) override;
  [[nodiscard]] std::unique_ptr<Pending> queue_after(
      StreamRef stream, const std::function<void(StreamRef)>& queue) override;

 protected:
  /// @param comm      Null in a group of one. It must outlive this object.
  /// @param priority  The priority of the group's own stream.
  StreamTransport(std::string group, const nccl::Communicator* comm,
                  std::shared_ptr<NcclContext> context, int priority)
      : context_{std::move(context)}, group_{std::move(group)}, comm_{comm}, priority_{priority} {}
  /// Queues a call on its stream.
  virtual void issue(const Call& call) = 0;
  /// Returns whether a stream is being captured into a graph.
  [[nodiscard]] virtual bool is_capturing(StreamRef stream) const;

  std::shared_ptr<NcclContext> context_;

 private:
  std::string group_;
  const nccl::Communicator* comm_;
  int priority_;
  device::Stream stream_;
};

/// Carries all operations on device memory except barriers. run() returns once NCCL has accepted
/// the operation (the communicator is ready again) or, inside a batch, once the operation is
/// part of the batch. The host does not wait for its end. gather, scatter and all_to_all are
/// grouped sends and receives, or one call of NCCL 2.28.
///
/// Blocks along an axis other than the first are packed or unpacked on the stream by a kernel, in
/// memory that is allocated and freed in stream order (nccl_axis.cpp).
///
/// NCCL has no 16-bit integers: they are transferred as bytes, and cannot be reduced.
///
/// Thread safety: one thread at a time per device, over all meshes.
class NcclTransport final : public StreamTransport {
 public:
  /// @param rank      The rank of this process in the group.
  /// @param timeout   The time limit for NCCL to accept an operation.
  /// @param priority  The priority of the group's own stream.
  /// @param least_compute_capability  Of the members' devices: 90 for 9.0.
  NcclTransport(std::unique_ptr<nccl::Communicator> comm, int rank, int size,
                Deadline::Duration timeout, int priority, std::shared_ptr<NcclContext> context,
                BootstrapReport report, int least_compute_capability);
  ~NcclTransport() override;
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  void validate(const Call& call) const override;
  void run(const Call& call, Waiter&) override { issue(call); }
  /// If the deadline passes, also aborts the communicator, and those of all groups if the stream
  /// does not become idle then.
  void wait(StreamRef stream, const Deadline& deadline, const std::function<void()>& look) override;

  [[nodiscard]] ncclComm* native() const override { return comm_->native(); }
  void note_registered(const std::byte* memory, std::size_t bytes) override {
    registered_.emplace_back(memory, bytes);
  }
  [[nodiscard]] bool is_registered(const std::byte* address) const override;
  [[nodiscard]] const BootstrapReport* bootstrap() const override { return &report_; }

  [[nodiscard]] nccl::Communicator& communicator() { return *comm_; }
  [[nodiscard]] BootstrapReport& report() { return report_; }
  /// Makes NCCL connect the members, with an all-reduce and with messages to both neighbours. NCCL
  /// connects in the first operation, and the hosts wait for each other meanwhile. If the ranks
  /// began with operations of different groups, that could deadlock; here all ranks connect their
  /// groups in the same order. Collective over the group; blocks.
  /// @param scratch  Device memory for 4 floats, or for `largest` bytes if these are more.
  /// @param largest  GroupOptions::warm_up_bytes.
  void warm_up(float* scratch, std::int64_t largest, const device::Stream& stream,
               WaitMonitor& monitor, const WaitPoint& point, const Deadline& deadline);

 private:
  void require_supported(const Call& call) const;
  void issue(const Call& call) override;
  [[nodiscard]] bool is_capturing(StreamRef stream) const override;
  void issue_along_axis(const Call& call);
  void end_work_on(StreamRef ref, const std::string& why) noexcept;
  void warm_up_collectives(float* scratch, std::int64_t bytes, StreamRef stream);

  std::unique_ptr<nccl::Communicator> comm_;
  int rank_, size_;
  Deadline::Duration timeout_;
  BootstrapReport report_;
  int least_compute_capability_;
  std::vector<std::span<const std::byte>> registered_;
  // The stream of the last call, and whether it was captured.
  struct {
    std::optional<const void*> stream;
    bool is_captured = false;
  } last_issue_;
};

/// Carries operations of groups of one on device memory: copies on the call's stream.
class LocalDeviceTransport final : public StreamTransport {
 public:
  LocalDeviceTransport(std::string group, std::shared_ptr<NcclContext> context, int priority)
      : StreamTransport{std::move(group), nullptr, std::move(context), priority} {}

  [[nodiscard]] std::string_view name() const override { return "local device"; }
  void run(const Call& call, Waiter&) override { issue(call); }

 private:
  void issue(const Call& call) override;
};

}  // namespace rankmesh

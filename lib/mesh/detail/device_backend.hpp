// SPDX-License-Identifier: BSD-3-Clause
// The devices of a mesh. The build compiles device_backend.cpp, or no_device_backend.cpp if CUDA or
// NCCL is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "transport/detail/device_transport.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// A group for which a device transport will be opened.
struct DeviceGroup {
  const GroupDescription* group = nullptr;
  mpi::CommunicatorView comm;  ///< The same members in the same order; MPI_COMM_SELF for one rank.
  GroupOptions options;  ///< `share_resources` says whether groups that are split from it share.
  int unique_ids = 1;
  std::size_t order = 0;  ///< Its place in the plan; any two ranks warm up groups in this order.
};

/// A split of a parent group's communicator. All ranks of the parent take part in it.
struct DeviceSplit {
  std::string family;    ///< The family of the new groups, for messages.
  std::string identity;  ///< The same on all ranks of the parent; unique in the mesh.
  const GroupDescription* parent = nullptr;
  DeviceTransport* open_parent = nullptr;  ///< Null if the parent is opened in the same step.
  std::optional<int> colour{};             ///< Empty if this rank is in no child.
  int key = 0;
  GroupOptions options{};
  std::optional<DeviceGroup> child{};
};

/// The communicators that one step opens, on this rank.
struct DeviceOpening {
  std::vector<DeviceGroup> groups;
  std::vector<DeviceSplit> splits;
  bool has_splits = false;  ///< Whether any rank splits; the same on every rank.
};
/// The transports that were opened, in the order of DeviceOpening; null for a
/// split without a child.
struct OpenedDevices {
  std::vector<std::unique_ptr<DeviceTransport>> groups;
  std::vector<std::unique_ptr<DeviceTransport>> children;
};

using Connections = std::span<const std::shared_ptr<Connection>>;

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// Returns the CUDA device that this rank uses.
  [[nodiscard]] virtual int device() const = 0;
  [[nodiscard]] virtual std::shared_ptr<DeviceBatch> batch() const = 0;

  /// Opens communicators. Collective over all members of all groups and parents; blocks. After an
  /// exception none of them is open; if a split has failed, its parent is closed too.
  virtual OpenedDevices open(const DeviceOpening& wanted, const Participants& participants) = 0;
  /// Returns the transport of a dynamic group of one rank. Local; does not touch the device.
  virtual std::unique_ptr<DeviceTransport> open_alone(const GroupDescription& group) = 0;
  /// Creates a transport on a communicator of the program. Local.
  /// @param blocks  Whether the communicator blocks.
  virtual std::unique_ptr<DeviceTransport> adopt(const GroupDescription& group,
                                                 const mpi::CommunicatorView& comm,
                                                 ncclComm* native, bool blocks) = 0;
  /// Waits until the device is idle, because NCCL cannot create a communicator while
  /// another one is in use. Local.
  virtual void drain(const Deadline& deadline) = 0;

  /// Returns the reason why groups cannot be closed now: CUDA graphs still contain operations of
  /// them. Empty if they can.
  /// @param only  Considers this group only; all groups if it is null.
  [[nodiscard]] virtual std::string living_graphs(const GroupDescription* only) const = 0;
  /// Waits until no operation uses symmetric memory any more. Local; call it before all
  /// ranks agree to close, because a peer may still read this rank's memory, while windows
  /// are deregistered locally.
  virtual void quiesce(Connections connections, const Deadline& deadline) = 0;
  /// Closes one group's communicator, after its operations are complete.
  /// Collective over its members.
  virtual void close(Connection& connection, const Deadline& deadline) = 0;
  /// Finalises and destroys all communicators, in the order of opening. Collective over the mesh.
  virtual void close(Connections connections, const Deadline& deadline) = 0;
  /// Lets a thread ask for a reason to abort all communicators, several times per second, until the
  /// devices are closed or aborted.
  /// @param reason  Returns an empty text if there is none. Called by that thread.
  /// @param limit   The thread asks several times within this time.
  virtual void watch(std::function<std::string()> reason, Deadline::Duration limit) = 0;
  /// Throws an Error if CUDA cannot use the device any more in this process. Local.
  virtual void require_working() const = 0;
  /// Aborts all communicators without waiting for other ranks. Local; waits for a limited time.
  /// @return The communicators that were left behind, with reasons; empty if all have ended.
  virtual std::string abort() noexcept = 0;
  /// Does the same with the communicator of one group.
  virtual std::string abort(Connection& connection) noexcept = 0;

  /// Allocates zeroed device memory, and registers it with the communicators of these connections.
  /// Collective over the mesh. close() frees the memory.
  /// @param agreement  What all ranks must pass alike.
  virtual std::byte* allocate_symmetric(std::size_t bytes, Agreement agreement,
                                        Connections connections) = 0;
};

/// The device backend, or the reason why there is none.
struct DeviceBackendOrReason {
  std::unique_ptr<DeviceBackend> backend;
  std::string why_not;
};

/// What this rank knows about devices before the ranks compare it.
struct DeviceProbe {
  /// Holds what must be the same on all ranks.
  Agreement agreement;
  /// Chooses the device of every rank. Collective over the mesh, after the agreement. Either all
  /// ranks get a backend, or none of them.
  std::function<DeviceBackendOrReason(std::shared_ptr<ControlPlane>)> open;
  bool is_agreed = false;  ///< Whether the summaries of all ranks are known to be equal.
};

/// Looks for the devices and the libraries of this rank. Local.
DeviceProbe probe_devices(const MeshOptions& options);

}  // namespace rankmesh::detail

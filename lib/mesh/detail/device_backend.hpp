// What a mesh has on devices. Built from device_backend.cpp, or from no_device_backend.cpp where
// CUDA or NCCL is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "group/detail/connection.hpp"
#include "rankmesh/base/deadline.hpp"
#include "rankmesh/device/device_batch.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/wait/agreement.hpp"
#include "transport/detail/device_transport.hpp"
#include "wait/detail/control_plane.hpp"

namespace rankmesh::detail {

/// One group that is to get a device transport.
struct DeviceGroup {
  const GroupDescription* group = nullptr;
  mpi::CommunicatorView comm;  ///< The same members in the same order; MPI_COMM_SELF for one.
  GroupOptions options;        ///< `share_resources`: whether groups that are split from it share.
  int unique_ids = 1;
  std::size_t order = 0;  ///< In the plan: any two ranks warm their groups up in this order.
};

/// One split of a parent group's communicator, in which every rank of the parent takes part.
struct DeviceSplit {
  std::string family;    ///< Whose groups are split off, for messages.
  std::string identity;  ///< The same on all ranks of the parent, and of no other split.
  const GroupDescription* parent = nullptr;
  DeviceTransport* open_parent = nullptr;  ///< Null where the parent is opened in the same step.
  std::optional<int> colour{};             ///< Nothing: this rank is in no child.
  int key = 0;
  GroupOptions options{};
  std::optional<DeviceGroup> child{};
};

/// What one step opens, on this rank.
struct DeviceOpening {
  std::vector<DeviceGroup> groups;
  std::vector<DeviceSplit> splits;
  bool has_splits = false;  ///< Whether any rank splits; the same on every rank.
};
/// The transports, in the order of DeviceOpening; null for a split without a child.
struct OpenedDevices {
  std::vector<std::unique_ptr<DeviceTransport>> groups;
  std::vector<std::unique_ptr<DeviceTransport>> children;
};

using Connections = std::span<const std::shared_ptr<Connection>>;

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  /// Returns the CUDA device that this rank drives.
  [[nodiscard]] virtual int device() const = 0;
  [[nodiscard]] virtual std::shared_ptr<DeviceBatch> batch() const = 0;

  /// Opens communicators. Collective over all members of all groups and parents; blocks. Whatever
  /// is thrown, none of them stays open, but a failed split takes its parent along.
  virtual OpenedDevices open(const DeviceOpening& wanted, const Participants& participants) = 0;
  /// Takes a communicator of the user's. Local.
  virtual std::unique_ptr<DeviceTransport> adopt(const GroupDescription& group,
                                                 const mpi::CommunicatorView& comm,
                                                 ncclComm* native) = 0;
  /// Waits until the device has nothing left to do, because no communicator may be made while
  /// another one is at work. Local.
  virtual void drain(const Deadline& deadline) = 0;

  /// Returns why nothing may be destroyed now: CUDA graphs that hold operations, by group. Empty
  /// where there is no reason. @param only  Looks at this group alone; null: at all.
  [[nodiscard]] virtual std::string living_graphs(const GroupDescription* only) const = 0;
  /// Waits until nothing works on symmetric memory any more: windows are deregistered locally, and
  /// a peer may still read this rank's memory. Local; call it before all ranks agree to close.
  virtual void quiesce(Connections connections, const Deadline& deadline) = 0;
  /// Ends one group's communicator; operations in flight complete. Collective over its members.
  virtual void close(Connection& connection, const Deadline& deadline) = 0;
  /// Finalizes all communicators, then destroys them, in the order of opening. Collective over the
  /// mesh.
  virtual void close(Connections connections, const Deadline& deadline) = 0;
  /// Ends all communicators at once, whatever their peers do. Local.
  virtual void abort(Connections connections) noexcept = 0;

  /// Allocates zeroed device memory, and registers it with the communicators of these connections.
  /// Collective over the mesh. The memory is freed by close().
  /// @param names  The families, for the comparison between ranks.
  virtual std::byte* allocate_symmetric(std::size_t bytes,
                                        const std::vector<std::string_view>& names,
                                        Connections connections) = 0;
};

/// The backend, or the reason why there is none.
struct DeviceBackendOrReason {
  std::unique_ptr<DeviceBackend> backend;
  std::string why_not;
};

/// Chooses the device of every rank. Collective over the mesh; all ranks get a backend, or none
/// does.
DeviceBackendOrReason open_device_backend(const MeshOptions& options, const Placement& placement,
                                          std::shared_ptr<ControlPlane> control);

}  // namespace rankmesh::detail

// What a mesh has on devices. Built from device_side.cpp, or from no_device_side.cpp where there is
// no CUDA or NCCL.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rankmesh/base/deadline.hpp"

struct ncclComm;

namespace rankmesh::detail {

struct Channel;
struct MeshState;

/// Settles over everybody who takes part whether this rank is well (empty `failure`); throws on all
/// of them where one is not.
using Settle = std::function<void(const std::string& phase, const std::string& failure)>;

class DeviceSide {
 public:
  virtual ~DeviceSide() = default;
  /// Opens what the plan's names lack, one flag per name. Collective over all ranks of these names'
  /// groups. Whatever is thrown, nothing of it stays open.
  virtual void open(const std::vector<bool>& names, const Settle& settle) = 0;
  /// Opens a communicator for one dynamic group. Collective over its members.
  virtual void open(Channel& channel) = 0;
  /// Takes a communicator of the user's. Local.
  virtual void adopt(Channel& channel, ncclComm* native) = 0;
  /// Waits until the device has nothing left to do: no communicator may be made while another is at
  /// work. Local.
  virtual void drain(const Deadline& deadline) = 0;

  /// Why nothing may be destroyed now: CUDA graphs that hold operations, by name. Empty where there
  /// is no reason.
  [[nodiscard]] virtual std::string living_graphs(const Channel* only) const = 0;
  /// Waits until nothing works on symmetric memory any more, where there is some: windows are taken
  /// back locally, and a peer may still read this rank's. Local; what comes before close() for all
  /// ranks.
  virtual void quiesce(const Deadline& deadline) = 0;
  /// Ends one group's communicator: what is under way completes. Collective over its members.
  virtual void close(Channel& channel, const Deadline& deadline) = 0;
  /// Finalises all communicators, then destroys all, in the order of opening; then the streams.
  /// Collective over the mesh.
  virtual void close(const Deadline& deadline) = 0;
  /// Ends all communicators at once, whatever their peers do. Local.
  virtual void abort() noexcept = 0;

  /// Zeroed device memory, registered with the communicators of these names. Collective over the
  /// mesh; it goes with close().
  virtual std::byte* allocate_symmetric(std::size_t bytes,
                                        const std::vector<std::string_view>& names) = 0;

  /// Gathers the operations that follow; end_batch() issues them together.
  virtual void begin_batch() = 0;
  virtual void end_batch(const Deadline& deadline) = 0;
};

/// Chooses the device and opens one NCCL communicator per channel whose name is not lazy,
/// collective over the mesh. Where there is nothing to open it returns null, having told the mesh's
/// services why.
std::unique_ptr<DeviceSide> open_device_side(MeshState& state);

}  // namespace rankmesh::detail

// What a mesh has on devices. Built from device_side.cpp, or from no_device_side.cpp where there is no CUDA
// or NCCL.
#pragma once

#include <memory>

#include "rankmesh/base/deadline.hpp"

namespace rankmesh::detail {

struct Channel;
struct MeshState;

class DeviceSide {
 public:
  virtual ~DeviceSide() = default;
  /// Opens a communicator for one more group. Collective over its members.
  virtual void open(Channel& channel) = 0;
  /// Ends one group's communicator: what is under way completes. Collective over its members.
  virtual void close(Channel& channel, const Deadline& deadline) = 0;
  /// Finalises all communicators, then destroys all, in the order of opening. Collective over the mesh.
  virtual void close(const Deadline& deadline) = 0;
  /// Ends all communicators at once, whatever their peers do. Local.
  virtual void abort() noexcept = 0;
};

/// Chooses the device and opens one NCCL communicator per channel, collective over the mesh. Where there is
/// nothing to open it returns null, having told the mesh's services why.
std::unique_ptr<DeviceSide> open_device_side(MeshState& state);

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// Lets the examples communicate either from host memory or from device memory by NCCL.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/rankmesh.hpp"

/// Returns the options of a mesh whose operations use the memory that an argument of an example
/// names: `host`, `device`, or `shared`, which is device memory where several ranks may share a
/// device.
inline rankmesh::MeshOptions options_for(std::string_view memory) {
  const bool is_shared = memory == "shared";
  rankmesh::MeshOptions options;
  options.devices =
      is_shared || memory == "device" ? rankmesh::DeviceUse::required : rankmesh::DeviceUse::off;
  options.share_devices = is_shared;
  return options;
}

/// The examples compute on the host. With devices, each operation first copies its values to the
/// device and then copies the results back. A real program would compute on the device.
class HostOrDevice {
 public:
  explicit HostOrDevice(bool on_devices) : on_devices_{on_devices} {}

  void all_reduce(rankmesh::GroupCoordinator& group, std::vector<float>& values,
                  rankmesh::ReduceOp op = rankmesh::ReduceOp::sum) const {
    if (!on_devices_) return group.all_reduce(values, op);
    const Buffer buffer{std::span<const float>{values}};
    group.all_reduce(buffer.span(), op, group.stream());
    values = buffer.download(group.stream());
  }
  void broadcast(rankmesh::GroupCoordinator& group, std::vector<float>& values,
                 rankmesh::RankInGroup root) const {
    if (!on_devices_) return group.broadcast(values, root);
    const Buffer buffer{std::span<const float>{values}};
    group.broadcast(buffer.span(), root, group.stream());
    values = buffer.download(group.stream());
  }
  void send(rankmesh::GroupCoordinator& group, const std::vector<float>& values,
            rankmesh::Peer to) const {
    if (!on_devices_) return group.send(values, to);
    const Buffer buffer{std::span<const float>{values}};
    group.send(buffer.span(), to, 0, group.stream());
    (void)buffer.download(group.stream());  // waits: the buffer must exist until it is sent
  }
  void recv(rankmesh::GroupCoordinator& group, std::vector<float>& values,
            rankmesh::Peer from) const {
    if (!on_devices_) return group.recv(values, from);
    const Buffer buffer{values.size()};
    group.recv(buffer.span(), from, 0, group.stream());
    values = buffer.download(group.stream());
  }

 private:
  using Buffer = rankmesh::device::DeviceBuffer<float>;
  bool on_devices_;
};

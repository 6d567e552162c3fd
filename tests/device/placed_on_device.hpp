// SPDX-License-Identifier: BSD-3-Clause
// Tensors in device memory, in places, whose elements have known values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "exchange/placed_tensors.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/exchange/redistribution.hpp"

namespace rankmesh_test {

/// A tensor of this rank: its device memory, and a copy in host memory.
struct Placed {
  explicit Placed(const rankmesh::TensorPlacement& place, std::int64_t gap = 0)
      : local{place, gap}, memory{local.memory.size()} {}
  void upload(rankmesh::StreamRef stream) { memory.upload(local.memory, stream); }
  void download(rankmesh::StreamRef stream) { local.memory = memory.download(stream); }
  [[nodiscard]] rankmesh::exchange::TensorSource source() {
    rankmesh::exchange::TensorSource result = local.source();
    result.memory.data = memory.data();
    result.memory.kind = rankmesh::MemoryKind::device;
    return result;
  }
  [[nodiscard]] rankmesh::exchange::TensorTarget target() {
    rankmesh::exchange::TensorTarget result = local.target();
    result.memory.data = memory.data();
    result.memory.kind = rankmesh::MemoryKind::device;
    return result;
  }
  Local local;
  rankmesh::device::DeviceBuffer<std::byte> memory;
};

}  // namespace rankmesh_test

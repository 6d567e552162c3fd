// SPDX-License-Identifier: BSD-3-Clause
// Device memory that is freed after its last use, without a wait of the host.
//
// cudaFree does not wait for the uses of memory that was allocated in stream order. A wait for the
// whole device would be a deadlock if an NCCL operation on it waits for the host of this rank.
#pragma once

#include <cstddef>
#include <memory>

#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::device {

/// Memory of the current device. The destructor frees it after the uses that were noted.
class OrderedMemory {
 public:
  /// Allocates memory that all streams can use at once. Does not wait for other work on the device.
  /// @throws CudaError
  explicit OrderedMemory(std::size_t bytes);

  [[nodiscard]] std::byte* data() const { return data_; }
  /// Notes that work which is on the stream now uses the memory. Call it after each use. If it
  /// fails, the memory is never freed.
  void note_use(StreamRef stream) noexcept;

 private:
  struct Parts;
  std::byte* data_ = nullptr;
  std::shared_ptr<Parts> parts_;
};

}  // namespace rankmesh::device

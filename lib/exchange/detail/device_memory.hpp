// SPDX-License-Identifier: BSD-3-Clause
// Device memory that is kept between operations.
//
// cudaFree does not wait for the uses of memory that was allocated in stream order. A wait for the
// whole device would be a deadlock if an NCCL operation on it waits for the host of this rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/stream_memory.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::exchange::detail {

/// Throws UsageError if the stream is being captured: memory that is allocated in a capture belongs
/// to the graph, so a caller cannot keep it.
inline void require_no_capture(StreamRef stream) {
  if (device::is_in_capture(stream))
    throw UsageError{"memory that is kept cannot be allocated while its stream is captured",
                     "make the call once before the capture, or call reserve()"};
}

/// Allocates memory that all streams can use at once. Does not wait for other work on the device.
[[nodiscard]] void* allocate_for_all_streams(std::size_t bytes);
/// Waits for all work on the device, and frees memory that was allocated in stream order. If the
/// work does not end within default_timeout(), the memory is never freed.
void free_after_device(void* memory) noexcept;

/// Queues a copy of `rows` rows of `bytes` bytes inside device memory. The rows begin `to_step` and
/// `from_step` bytes apart. It is one copy of CUDA; where CUDA refuses the distances, it is one per
/// row.
void copy_rows_in_order(std::byte* to, std::int64_t to_step, const std::byte* from,
                        std::int64_t from_step, std::int64_t bytes, std::int64_t rows,
                        StreamRef stream);

/// Frees with free_after_device().
struct FreeAfterDevice {
  void operator()(void* memory) const noexcept { free_after_device(memory); }
};

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

}  // namespace rankmesh::exchange::detail

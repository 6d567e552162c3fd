// SPDX-License-Identifier: BSD-3-Clause
// Memory for work on streams that does not make the host wait for the whole device.
//
// cudaMalloc and cudaFree may wait for all work on the device. If an NCCL operation is part of this
// work, and its peer waits for the host of this rank, both ranks hang. Allocating and freeing
// memory in the order of a stream waits for nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/device/device_buffer.hpp"

namespace rankmesh::device {

/// Allocates memory of the current device in the order of the stream, from a pool of the process.
/// The pool keeps freed memory until trim_pools(), whereas the default pool of CUDA returns it at
/// each synchronisation.
/// @throws CudaError
[[nodiscard]] void* allocate_in_order(std::size_t bytes, StreamRef stream);
/// Frees memory of allocate_in_order() after the work that is on the stream now.
/// @throws CudaError
void free_in_order(void* memory, StreamRef stream);

/// Returns whether the stream is being captured.
/// @throws UsageError if the capture is invalidated.
[[nodiscard]] bool is_in_capture(StreamRef stream);
/// Throws UsageError if the stream is being captured: memory that is allocated in a capture belongs
/// to the graph, so a caller cannot keep it.
void require_no_capture(StreamRef stream);
/// Allocates memory that all streams can use at once. Does not wait for other work on the device.
[[nodiscard]] void* allocate_for_all_streams(std::size_t bytes);
/// Waits for all work on the device, and frees memory of the functions above. If the work does not
/// end within default_timeout(), the memory is never freed.
void free_after_device(void* memory) noexcept;

/// Allocates and frees page-locked host memory. Both may wait for all work on the device.
[[nodiscard]] void* allocate_pinned(std::size_t bytes);
void free_pinned(void* memory) noexcept;
/// Queues a copy between page-locked and device memory. The host does not wait.
void copy_in_order(void* to, const void* from, std::size_t bytes, detail::Direction direction,
                   StreamRef stream);
/// Queues a copy of `rows` rows of `bytes` bytes inside device memory. The rows begin `to_step` and
/// `from_step` bytes apart. It is one copy of CUDA; where CUDA refuses the distances, it is one per
/// row.
void copy_rows_in_order(std::byte* to, std::int64_t to_step, const std::byte* from,
                        std::int64_t from_step, std::int64_t bytes, std::int64_t rows,
                        StreamRef stream);
/// Waits until the stream is idle.
/// @throws TimeoutError if it is still busy after default_timeout().
void wait_for(StreamRef stream);

/// Returns the unused memory of the pools to the device.
void trim_pools() noexcept;

/// Frees with free_after_device() or free_pinned().
struct FreeAfterDevice {
  void operator()(void* memory) const noexcept { free_after_device(memory); }
};
struct FreePinned {
  void operator()(void* memory) const noexcept { free_pinned(memory); }
};

}  // namespace rankmesh::device

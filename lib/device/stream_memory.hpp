// SPDX-License-Identifier: BSD-3-Clause
// Memory for work on streams that does not make the host wait for the whole device.
//
// cudaMalloc and cudaFree may wait for all work on the device. If an NCCL operation is part of this
// work, and its peer waits for the host of this rank, both ranks hang. Allocating and freeing
// memory in the order of a stream waits for nothing.
#pragma once

#include <cstddef>

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
/// Waits until the stream is idle.
/// @throws TimeoutError if it is still busy after default_timeout().
void wait_for(StreamRef stream);

/// Returns the unused memory of the pools to the device.
void trim_pools() noexcept;

}  // namespace rankmesh::device

// SPDX-License-Identifier: BSD-3-Clause
// Copies many short runs of bytes in few launches, where CUDA's own copies would be one call each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::device {

/// Rows at equal distances, in bytes.
struct RowsToMove {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;  ///< Of a row, at least 1.
  std::int64_t count = 1;  ///< The number of rows, at least 1.
  std::int64_t to_step = 0, from_step = 0;
};

/// Queues the copies on a stream of the current device: one launch for each 64 lists of rows that
/// can use words of the same width. No list reads what another one writes.
/// @throws CudaError  @throws NoDeviceError  rankmesh was built without nvcc: see has_kernels().
void launch(std::span<const RowsToMove> lists, StreamRef stream);

}  // namespace rankmesh::device

// SPDX-License-Identifier: BSD-3-Clause
// Moves the data of collectives along an axis other than the first. Each row of the whole array has
// one piece of every member. The collective itself sends or receives the blocks of the members.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::device {

/// Copies all pieces of an array to the blocks of the members, or back. The array has `rows` rows
/// of `members` pieces; `blocks` has `members` blocks of `rows` pieces. Piece k of row r in the
/// array is piece r of block k.
struct MovePieces {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::int64_t rows = 0;
  std::int64_t members = 0;
  std::int64_t piece_bytes = 0;
  bool to_blocks = false;  ///< Whether `from` is the array and `to` the blocks, or the reverse.
};

/// Queues the copy on a stream of the current device.
/// @throws CudaError  @throws NoDeviceError  rankmesh was built without nvcc: see has_kernels().
void launch(const MovePieces& work, StreamRef stream);

}  // namespace rankmesh::device

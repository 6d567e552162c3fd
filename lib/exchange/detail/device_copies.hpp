// SPDX-License-Identifier: BSD-3-Clause
// Copies inside device memory that are collected first, so that neighbouring ones become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exchange/kernels/move_rows.hpp"
#include "message_stream.hpp"
#include "rankmesh/base/stream_ref.hpp"

namespace rankmesh::exchange::detail {

/// A list of copies. None of them reads what another one writes.
class DeviceCopies {
 public:
  /// Adds the elements of a strip. Both arrays have the same type.
  /// @param tensor  The number of the tensor. The copies of different tensors stay apart, because a
  ///                copy of CUDA must not reach from one allocation into another one.
  void add(std::size_t tensor, const ArrayView& from, const ArrayView& to, const Strip& strip);
  /// Queues the copies on a stream, and forgets them.
  void queue(StreamRef stream);

 private:
  void add(std::size_t tensor, device::RowsToMove rows);

  std::vector<device::RowsToMove> list_;
  std::size_t last_tensor_ = 0;  // of the last rows in the list
};

}  // namespace rankmesh::exchange::detail

// SPDX-License-Identifier: BSD-3-Clause
// Copies inside device memory that are collected first, so that neighbouring ones become one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
  // Rows at equal distances, in bytes.
  struct Rows {
    std::size_t tensor;
    std::byte* to;
    const std::byte* from;
    std::int64_t bytes;
    std::int64_t count = 1;
    std::int64_t to_step = 0, from_step = 0;
  };
  void add(Rows rows);

  std::vector<Rows> list_;
};

}  // namespace rankmesh::exchange::detail

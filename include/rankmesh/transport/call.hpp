// SPDX-License-Identifier: BSD-3-Clause
// The description of one operation.
#pragma once

#include <cstdint>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/transport/blocks.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// Describes one operation of a group, for a transport. The coordinator has already checked sizes,
/// overlap and ranks. Counts are in elements; n is the size of the group.
///
/// | operation      | in                 | out                | root        |
/// |----------------|--------------------|--------------------|-------------|
/// | broadcast      | -                  | count, everywhere  | the source  |
/// | reduce         | count              | count, at the root | destination |
/// | all_reduce     | count              | count              |             |
/// | all_gather     | count              | n x count          |             |
/// | reduce_scatter | n x count          | count              |             |
/// | gather         | count              | n x count, at root | destination |
/// | scatter        | n x count, at root | count              | the source  |
/// | all_to_all     | n x count          | n x count          |             |
/// | send, recv     | count / -          | - / count          |             |
/// | send_recv      | count              | another count      |             |
///
/// In an operation in place, `in` and `out` are the same memory. For all_gather and gather, `in` is
/// this rank's block of `out`; for scatter, `out` is the root's block of its `in`.
struct Call {
  Operation operation = Operation::barrier;
  ReduceOp reduction = ReduceOp::sum;
  int tag = 0;  ///< The tag of point-to-point operations.
  ConstBuffer in{};
  Buffer out{};
  /// The members' blocks in the v-forms of all_gather, reduce_scatter, gather, scatter and
  /// all_to_all; null if all blocks have the same size, or if the buffer is one block. The blocks
  /// need not outlive run() or start().
  const Blocks* in_blocks = nullptr;
  const Blocks* out_blocks = nullptr;
  /// The number of pieces of each block along an axis (see Axis): in the whole array, the first
  /// pieces of all members come first, then the second ones, and so on. It applies to all_gather,
  /// gather, reduce_scatter and scatter without Blocks.
  std::int64_t rows = 1;
  /// Replaces `reduction` if it is not null; the buffers then count bytes. It is allowed for host
  /// memory only.
  UserReduction* user = nullptr;
  RankInGroup root{};         ///< The root of rooted collectives.
  RankInGroup destination{};  ///< The destination of send and send_recv.
  RankInGroup source{};       ///< The source of recv and send_recv.
  StreamRef stream{};         ///< The stream of operations on device memory.
  /// The call of the program, if the coordinator replaced it by this call on scratch memory; else
  /// null. Members compare the calls of the program.
  const Call* original = nullptr;

  /// Returns whether the call is a v-form.
  [[nodiscard]] constexpr bool has_blocks() const {
    return in_blocks != nullptr || out_blocks != nullptr;
  }
  /// Returns whether the call has equal blocks along the first axis and no user's reduction.
  [[nodiscard]] constexpr bool is_plain() const {
    return !has_blocks() && rows == 1 && user == nullptr;
  }
};

}  // namespace rankmesh

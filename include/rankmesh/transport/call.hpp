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

/// Describes one operation of a group to a transport. The coordinator has already checked the
/// sizes, the ranks, and that the buffers do not overlap. Counts are in elements; n is the size of
/// the group.
///
/// | operation         | in                 | out                | root        |
/// |-------------------|--------------------|--------------------|-------------|
/// | broadcast         | -                  | count, everywhere  | the source  |
/// | reduce            | count              | count, at the root | destination |
/// | all_reduce, scans | count              | count              |             |
/// | all_gather        | count              | n x count          |             |
/// | reduce_scatter    | n x count          | count              |             |
/// | gather            | count              | n x count, at root | destination |
/// | scatter           | n x count, at root | count              | the source  |
/// | all_to_all        | n x count          | n x count          |             |
/// | send, recv        | count / -          | - / count          |             |
/// | send_recv         | count              | count, may differ  |             |
///
/// In an in-place operation, `in` and `out` are the same memory. In an in-place all_gather or
/// gather, `in` is this rank's block of `out`. In an in-place scatter, the root's `out` is the
/// root's block of `in`.
struct Call {
  Operation operation = Operation::barrier;  ///< The operation.
  ReduceOp reduction = ReduceOp::sum;        ///< The reduction, of operations that reduce.
  int tag = 0;                               ///< The tag of point-to-point operations.
  ConstBuffer in{};                          ///< The input.
  Buffer out{};                              ///< The output.
  /// The members' blocks in `in` and in `out`, for the v-forms of all_gather, reduce_scatter,
  /// gather, scatter and all_to_all. A pointer is null if all blocks have the same size, or if the
  /// buffer is a single block. The Blocks must exist until run() or start() returns.
  const Blocks* in_blocks = nullptr;
  const Blocks* out_blocks = nullptr;  ///< The members' blocks in `out`.
  /// The number of pieces into which each member's block is divided (see Axis). The whole array
  /// contains the first pieces of all members, then the second pieces of all members, and so on.
  /// Only all_gather, gather, reduce_scatter and scatter without Blocks use `rows`.
  std::int64_t rows = 1;
  /// Which of the caller's buckets the call moves, counted from 1; 0 if the caller does not number
  /// them. It is used only in texts and in comparisons of calls. A call with a number has neither
  /// Blocks nor rows.
  std::int64_t bucket = 0;
  /// If `user` is not null, it replaces `reduction`, and the counts of the buffers are in bytes.
  /// Allowed for host memory only.
  UserReduction* user = nullptr;
  RankInGroup root{};         ///< The root of rooted collectives.
  RankInGroup destination{};  ///< The destination of send and send_recv.
  RankInGroup source{};       ///< The source of recv and send_recv.
  StreamRef stream{};         ///< The stream of operations on device memory.
  /// Whether the program used the form with _async, so that Transport::start() gets the call.
  bool is_async = false;
  /// Which of the group's names the program called it by, for messages: families with equal groups
  /// share the connection. Bits 0 to 13 are an index. Bits 14 and 15 are the ArrayOrder of the
  /// program's array, so that the members compare it, too.
  std::uint32_t name_index = 0;
  /// The call of the program, if the coordinator replaced it by this call on scratch memory; else
  /// null. Members compare the calls of the program.
  const Call* original = nullptr;

  /// Returns whether the buffers are in device memory. A buffer that the operation does not have is
  /// on the host.
  [[nodiscard]] constexpr bool is_on_device() const {
    return in.kind == MemoryKind::device || out.kind == MemoryKind::device;
  }
  /// Returns whether the call is a v-form.
  [[nodiscard]] constexpr bool has_blocks() const {
    return in_blocks != nullptr || out_blocks != nullptr;
  }
  /// Returns whether all blocks have equal sizes and lie along the first axis, and the call has no
  /// user's reduction.
  [[nodiscard]] constexpr bool is_plain() const {
    return !has_blocks() && rows == 1 && user == nullptr;
  }
};

}  // namespace rankmesh

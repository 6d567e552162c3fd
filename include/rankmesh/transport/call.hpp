// One collective or point-to-point operation as a record.
#pragma once

#include <cstdint>
#include <span>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/index.hpp"
#include "rankmesh/base/operation.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/transport/user_reduction.hpp"

namespace rankmesh {

/// What a transport is asked to do. Sizes, overlap and ranks were checked by the coordinator. `n` is the size
/// of the group; counts are in elements.
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
/// In place: `in` is `out`, or, for all_gather and gather, the rank's own block of `out` (scatter: `out` is
/// the root's own block of `in`).
struct Call {
  Operation operation = Operation::barrier;
  ConstBuffer in{};
  Buffer out{};
  /// Elements per rank and where each block begins, where they differ (v-forms: all_gather, reduce_scatter,
  /// gather, scatter, all_to_all); empty where all blocks are equal. Only the sides that have blocks use
  /// theirs.
  std::span<const std::int64_t> in_counts{};
  std::span<const std::int64_t> in_displacements{};
  std::span<const std::int64_t> out_counts{};
  std::span<const std::int64_t> out_displacements{};
  /// all_gather, gather, reduce_scatter, scatter without counts: each block is so many stretches, and those
  /// of the members take turns in the whole (another axis than the first).
  std::int64_t rows = 1;
  ReduceOp reduction = ReduceOp::sum;
  UserReduction* user = nullptr;  ///< instead of `reduction`; then the buffers are bytes. Host memory alone.
  RankInGroup root{};             ///< of rooted collectives
  RankInGroup destination{};      ///< of send and send_recv
  RankInGroup source{};           ///< of recv and send_recv
  int tag = 0;                    ///< of point-to-point operations
  StreamRef stream{};             ///< of operations on device memory

  /// Blocks of one size along the first axis, and a reduction of MPI's if any.
  [[nodiscard]] constexpr bool is_plain() const {
    return (in_counts.size() | out_counts.size() | static_cast<std::size_t>(rows ^ 1)) == 0 &&
           user == nullptr;
  }
};

}  // namespace rankmesh

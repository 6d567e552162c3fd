// One collective or point-to-point operation as a record.
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

/// What a transport is asked to do. Sizes, overlap and ranks were checked by the coordinator. `n`
/// is the size of the group; counts are in elements.
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
/// In place: `in` is `out`, or, for all_gather and gather, the rank's own block of `out` (scatter:
/// `out` is the root's own block of `in`).
struct Call {
  Operation operation = Operation::barrier;
  ReduceOp reduction = ReduceOp::sum;
  int tag = 0;  ///< of point-to-point operations
  ConstBuffer in{};
  Buffer out{};
  /// The members' blocks where their sizes differ (v-forms: all_gather, reduce_scatter, gather,
  /// scatter, all_to_all); null where all are equal. Only sides that are divided have them. They
  /// need not outlive run() or start().
  const Blocks* in_blocks = nullptr;
  const Blocks* out_blocks = nullptr;
  /// all_gather, gather, reduce_scatter, scatter without blocks: each block is so many stretches,
  /// and those of the members take turns in the whole (another axis than the first).
  std::int64_t rows = 1;
  UserReduction* user =
      nullptr;         ///< instead of `reduction`; then the buffers are bytes. Host memory alone.
  RankInGroup root{};  ///< of rooted collectives
  RankInGroup destination{};  ///< of send and send_recv
  RankInGroup source{};       ///< of recv and send_recv
  StreamRef stream{};         ///< of operations on device memory

  [[nodiscard]] constexpr bool has_blocks() const {
    return in_blocks != nullptr || out_blocks != nullptr;
  }
  /// Blocks of one size along the first axis, and a reduction of MPI's if any.
  [[nodiscard]] constexpr bool is_plain() const {
    return !has_blocks() && rows == 1 && user == nullptr;
  }
};

}  // namespace rankmesh

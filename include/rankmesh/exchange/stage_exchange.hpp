// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives between the stages of a pipeline.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/calls.hpp"

namespace rankmesh::exchange {

/// A buffer that is sent or received between neighbouring stages.
struct StageMove {
  bool is_forward = true;  ///< From a stage to the next one; false: to the previous one.
  bool is_sent = true;     ///< This rank sends; false: it receives.
  ConstBuffer in{};        ///< The buffer to send.
  Buffer out{};            ///< The buffer to receive into.
};

// Activations are sent to the next stage and received from the previous one; gradients are sent in
// the other direction.

/// Creates one move of StageExchange::start().
template <Memory In>
StageMove to_next(In&& values) {
  return {.is_forward = true, .is_sent = true, .in = calls::input(values)};
}
template <WritableMemory Out>
StageMove from_prev(Out&& values) {
  return {.is_forward = true, .is_sent = false, .out = buffer_of(values)};
}
template <Memory In>
StageMove to_prev(In&& values) {
  return {.is_forward = false, .is_sent = true, .in = calls::input(values)};
}
template <WritableMemory Out>
StageMove from_next(Out&& values) {
  return {.is_forward = false, .is_sent = false, .out = buffer_of(values)};
}

struct StageExchangeOptions {
  /// The stage after the last one is the first, as interleaved schedules (virtual stages) need it.
  /// Without it, the ends of the pipeline skip moves that would cross them.
  bool ring = false;
  /// The tag of forward moves on host memory; backward moves use the next one.
  int tag = 0;
};

/// Runs the sends and receives of one step at the same time. No order of the moves can deadlock,
/// because no move waits for another one of the same call.
///
/// Neighbours must issue matching moves in the same order in each direction: the k-th buffer that a
/// stage sends forward is the k-th that the next stage receives, with the same type and count. On
/// host memory, moves are asynchronous operations, receives first. On device memory, they are one
/// batch on the stream, or part of an open NcclGroup; the host does not wait for them.
///
/// Cost: one message per move. It is not collective: each stage makes the calls of its schedule.
/// Thread safety: that of the group.
class RANKMESH_API StageExchange {
 public:
  /// Local. @throws UsageError  `ring` in a pipeline of one stage, or a tag out of range.
  explicit StageExchange(GroupCoordinator& stages, StageExchangeOptions options = {});

  /// Starts the moves; does not block. The buffers must stay valid until the result is complete, on
  /// device memory until the stream has run the moves.
  /// @throws UsageError, TimeoutError, mpi::MpiError, nccl::NcclError.
  [[nodiscard]] WorkList start(std::span<const StageMove> moves, StreamRef stream = {});
  [[nodiscard]] WorkList start(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    return start(std::span{moves.begin(), moves.size()}, stream);
  }
  /// Starts the moves and waits for those on host memory, with the mesh's timeout.
  void run(std::span<const StageMove> moves, StreamRef stream = {}) { start(moves, stream).wait(); }
  void run(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    start(moves, stream).wait();
  }

  // The steps of the usual schedules, with the names of Megatron-LM.

  template <WritableMemory Out>
  void recv_forward(Out&& activations, StreamRef stream = {}) {
    run({from_prev(activations)}, stream);
  }
  template <Memory In>
  void send_forward(In&& activations, StreamRef stream = {}) {
    run({to_next(activations)}, stream);
  }
  template <WritableMemory Out>
  void recv_backward(Out&& gradients, StreamRef stream = {}) {
    run({from_next(gradients)}, stream);
  }
  template <Memory In>
  void send_backward(In&& gradients, StreamRef stream = {}) {
    run({to_prev(gradients)}, stream);
  }
  template <Memory In, WritableMemory Out>
  void send_forward_recv_backward(In&& activations, Out&& gradients, StreamRef stream = {}) {
    run({to_next(activations), from_next(gradients)}, stream);
  }
  template <Memory In, WritableMemory Out>
  void send_backward_recv_forward(In&& gradients, Out&& activations, StreamRef stream = {}) {
    run({to_prev(gradients), from_prev(activations)}, stream);
  }
  template <Memory In, WritableMemory Out>
  void send_forward_recv_forward(In&& activations, Out&& next_activations, StreamRef stream = {}) {
    run({to_next(activations), from_prev(next_activations)}, stream);
  }
  template <Memory In, WritableMemory Out>
  void send_backward_recv_backward(In&& gradients, Out&& next_gradients, StreamRef stream = {}) {
    run({to_prev(gradients), from_next(next_gradients)}, stream);
  }

 private:
  [[nodiscard]] bool leaves_pipeline(const StageMove& move) const;
  [[nodiscard]] Call call_of(const StageMove& move, StreamRef stream) const;

  GroupCoordinator& stages_;
  StageExchangeOptions options_;
};

}  // namespace rankmesh::exchange

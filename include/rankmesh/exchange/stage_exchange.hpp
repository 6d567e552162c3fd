// What the stages of a pipeline tell their neighbours.
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

/// One buffer on its way between neighbouring stages.
struct StageMove {
  bool is_forward = true;  ///< from a stage to the next; backward: from a stage to the previous one
  bool is_sent = true;     ///< by this rank; else received
  ConstBuffer in{};        ///< of what is sent
  Buffer out{};            ///< of what is received
};

/// Activations go to the next stage and come from the previous one; gradients the other way.
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
  /// The last stage's next is the first one, as interleaved schedules (virtual stages) need it.
  /// Without it what would leave the pipeline at an end is not sent, and what would come from there
  /// is left as it is.
  bool ring = false;
  /// Of what goes forward; what goes backward has the following one. Host memory.
  int tag = 0;
};

/// Sends and receives of one step, all under way at once: nobody waits for an operation that its
/// neighbour issues only after another, so no order of sends and receives deadlocks, in either
/// direction or both.
///
/// Neighbours issue matching moves in the same order per direction: the k-th that is sent forward
/// is the k-th that the next stage receives, of the same type and count. Host memory goes by
/// asynchronous operations, all receives first; device memory as one batch on the stream (inside an
/// NcclGroup: as part of that), which the host does not wait for.
///
/// Cost: a message per move. Not collective: each stage calls what its schedule says. One thread.
class RANKMESH_API StageExchange {
 public:
  /// @throws UsageError for `ring` in a pipeline of one stage, and for a tag out of range.
  explicit StageExchange(GroupCoordinator& stages, StageExchangeOptions options = {});

  /// Begins; buffers must stay valid until the result is complete (device memory: until the stream
  /// has run it). @throws UsageError, TimeoutError, mpi::MpiError, device::NcclError.
  [[nodiscard]] WorkList start(std::span<const StageMove> moves, StreamRef stream = {});
  [[nodiscard]] WorkList start(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    return start(std::span{moves.begin(), moves.size()}, stream);
  }
  /// The same, and waits for what is on the host, with the mesh's timeout.
  void run(std::span<const StageMove> moves, StreamRef stream = {}) { start(moves, stream).wait(); }
  void run(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    start(moves, stream).wait();
  }

  // The steps of the known schedules, by the names of Megatron-LM.

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

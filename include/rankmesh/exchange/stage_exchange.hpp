// SPDX-License-Identifier: BSD-3-Clause
// Sends and receives between the stages of a pipeline.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "rankmesh/group/detail/no_group.hpp"

namespace rankmesh::exchange {

/// Describes a buffer that is sent or received between neighbouring stages.
struct StageMove {
  bool is_forward = true;  ///< True if the data moves to the next stage, false if it moves to the
                           ///< previous stage.
  bool is_sent = true;     ///< True if this rank sends the buffer, false if it receives the buffer.
  ConstBuffer in{};        ///< The buffer to send.
  Buffer out{};            ///< The buffer to receive into.
};

/// A move that sends a temporary container. run() accepts it, because the container is destroyed
/// only after run() has returned. start() does not.
struct MoveOfTemporary {
  StageMove move;  ///< The move.
};

namespace detail {

/// A move that run() accepts.
struct MoveToRun {
  MoveToRun(const StageMove& of_variable) : move{of_variable} {}               // implicit
  MoveToRun(const MoveOfTemporary& of_temporary) : move{of_temporary.move} {}  // implicit
  StageMove move;
};

template <class In>
auto sent(bool is_forward, In&& values) {
  constexpr bool is_memory = Memory<In>;  // a concept in the assertion would print its parts
  static_assert(is_memory,
                "this is no memory: pass a container of numbers, or std::span{pointer, n}");
  StageMove move{.is_forward = is_forward, .is_sent = true};
  if constexpr (is_memory) move.in = calls::input(values);
  if constexpr (!is_memory || rankmesh::detail::is_borrowed<In>)
    return move;
  else
    return MoveOfTemporary{move};
}

template <class Out>
StageMove received(bool is_forward, Out&& values) {
  constexpr bool is_memory = WritableMemory<Out>;
  static_assert(is_memory,
                "nothing can be received here: pass a container of numbers that is not const, or "
                "std::span{pointer, n}");
  static_assert(!is_memory || rankmesh::detail::is_borrowed<Out>,
                "nobody can read what a temporary container receives: pass a variable");
  StageMove move{.is_forward = is_forward, .is_sent = false};
  if constexpr (is_memory) move.out = buffer_of(values);
  return move;
}

}  // namespace detail

// Activations are sent to the next stage and received from the previous stage. Gradients are sent
// to the previous stage and received from the next stage.

/// Creates a move for StageExchange::start() and run(), like the three functions below.
template <class In>
auto to_next(In&& values) {
  return detail::sent(true, std::forward<In>(values));
}
/// Refuses a list in braces, at compile time.
template <class T>
RANKMESH_REFUSE("a list in braces is no memory: pass a variable, or write std::vector{1.0, 2.0}")
StageMove to_next(std::initializer_list<T>) {
  return {};
}
template <class Out>
StageMove from_prev(Out&& values) {
  return detail::received(true, std::forward<Out>(values));
}
template <class In>
auto to_prev(In&& values) {
  return detail::sent(false, std::forward<In>(values));
}
template <class T>
RANKMESH_REFUSE("a list in braces is no memory: pass a variable, or write std::vector{1.0, 2.0}")
StageMove to_prev(std::initializer_list<T>) {
  return {};
}
template <class Out>
StageMove from_next(Out&& values) {
  return detail::received(false, std::forward<Out>(values));
}

/// The options of a StageExchange.
struct StageExchangeOptions {
  /// If true, the last stage is followed by the first stage, as interleaved schedules (virtual
  /// stages) require. A pipeline of one stage then sends to itself. If false, the first and the
  /// last stage skip the moves that would leave the pipeline.
  bool ring = false;
  /// The tag of forward moves on host memory. Backward moves use the tag `tag` + 1.
  int tag = 0;
};

/// Runs all sends and receives of one step between neighbouring pipeline stages at the same time.
/// The moves cannot deadlock in any order, because no move waits for another move of the same call.
///
/// In each direction, neighbouring stages must issue matching moves in the same order. The k-th
/// buffer that a stage sends forward is received into the k-th buffer of the next stage, which must
/// have the same type and count. On host memory, the moves are asynchronous operations, and
/// receives are started before sends. On device memory, the moves are one batch on the stream, or
/// part of an open NcclGroup. The host does not wait for moves on device memory.
///
/// Cost: one message per move. The functions are not collective. Each stage calls the functions
/// that its own schedule needs. Thread safety: the rules of the group apply.
class RANKMESH_API StageExchange {
 public:
  /// Creates the exchange. Local.
  /// @param stages  A group that must outlive this object. Afterwards, start() and run() throw
  /// ClosedError.
  /// @throws UsageError if `tag` is not in 0 .. 16382.
  explicit StageExchange(GroupCoordinator& stages, StageExchangeOptions options = {});
  /// Refuses an option without its name, at compile time.
  template <std::same_as<bool> B>
  RANKMESH_REFUSE("name the option: write {.ring = true}")
  StageExchange(GroupCoordinator& stages, B) : StageExchange{stages} {}

  /// @cond  This overload only refuses calls.
  template <class NoGroup, class... A>
    requires(!std::derived_from<NoGroup, GroupCoordinator> && !std::same_as<NoGroup, StageExchange>)
  explicit StageExchange(NoGroup&, A&&...) : StageExchange{rankmesh::detail::no_group()} {
    static_assert(rankmesh::detail::never<NoGroup>,
                  "a StageExchange needs a group: write StageExchange{mesh[\"pp\"]}, or "
                  "StageExchange{*group}");
  }
  /// @endcond

  /// Starts the moves; does not block. Buffers in host memory must stay valid until the returned
  /// WorkList is complete. Buffers in device memory must stay valid until the stream has run the
  /// moves.
  /// @throws UsageError if a buffer that is received shares memory with another one; ClosedError if
  /// the group is gone; the exceptions of all operations, see GroupCoordinator.
  [[nodiscard]] WorkList start(std::span<const StageMove> moves, StreamRef stream = {});
  /// Does the same for a list of moves in braces.
  [[nodiscard]] WorkList start(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    return start(std::span{moves.begin(), moves.size()}, stream);
  }
  /// Refuses a temporary container, at compile time.
  RANKMESH_REFUSE(
      "a temporary container is destroyed before the moves are complete: pass a variable, or write "
      "run(...)")
  WorkList start(std::initializer_list<detail::MoveToRun>, StreamRef = {}) { return {}; }
  /// Starts the moves. Then waits for the moves on host memory, as Work::wait() does.
  /// @throws UsageError also if a move is on host memory and an NcclGroup is open.
  void run(std::span<const StageMove> moves, StreamRef stream = {});
  /// Does the same for a list of moves in braces.
  void run(std::initializer_list<StageMove> moves, StreamRef stream = {}) {
    run(std::span{moves.begin(), moves.size()}, stream);
  }
  /// Does the same if a container that is sent is temporary.
  void run(std::initializer_list<detail::MoveToRun> moves, StreamRef stream = {}) {
    std::vector<StageMove> all;
    for (const detail::MoveToRun& one : moves) all.push_back(one.move);
    run(std::span<const StageMove>{all}, stream);
  }

  /// Refuses moves that are not in a list, at compile time.
  template <std::same_as<StageMove>... Moves>
  RANKMESH_REFUSE("the moves are a list: write run({to_next(a), from_prev(b)}, stream)")
  void run(const StageMove&, const Moves&...) {}

  // The steps of the usual schedules. The names are those that Megatron-LM uses.

  /// Receives activations from the previous stage. Does nothing on the first stage.
  template <class Out>
  void recv_forward(Out&& activations, StreamRef stream = {}) {
    run({from_prev(activations)}, stream);
  }
  /// Sends activations to the next stage. Does nothing on the last stage.
  template <class In>
  void send_forward(In&& activations, StreamRef stream = {}) {
    run({to_next(activations)}, stream);
  }
  /// Receives gradients from the next stage. Does nothing on the last stage.
  template <class Out>
  void recv_backward(Out&& gradients, StreamRef stream = {}) {
    run({from_next(gradients)}, stream);
  }
  /// Sends gradients to the previous stage. Does nothing on the first stage.
  template <class In>
  void send_backward(In&& gradients, StreamRef stream = {}) {
    run({to_prev(gradients)}, stream);
  }
  /// Sends activations to the next stage, and receives gradients from it.
  template <class In, class Out>
  void send_forward_recv_backward(In&& activations, Out&& gradients, StreamRef stream = {}) {
    run({to_next(activations), from_next(gradients)}, stream);
  }
  /// Sends gradients to the previous stage, and receives activations from it.
  template <class In, class Out>
  void send_backward_recv_forward(In&& gradients, Out&& activations, StreamRef stream = {}) {
    run({to_prev(gradients), from_prev(activations)}, stream);
  }
  /// Sends activations to the next stage, and receives activations from the previous stage.
  template <class In, class Out>
  void send_forward_recv_forward(In&& activations, Out&& next_activations, StreamRef stream = {}) {
    run({to_next(activations), from_prev(next_activations)}, stream);
  }
  /// Sends gradients to the previous stage, and receives gradients from the next stage.
  template <class In, class Out>
  void send_backward_recv_backward(In&& gradients, Out&& next_gradients, StreamRef stream = {}) {
    run({to_prev(gradients), from_next(next_gradients)}, stream);
  }

 private:
  [[nodiscard]] bool leaves_pipeline(const StageMove& move) const;
  [[nodiscard]] Call call_of(const StageMove& move, StreamRef stream) const;
  void require_separate(std::span<const StageMove> moves) const;
  void copy_on_device(std::span<const StageMove> moves, StreamRef stream);

  rankmesh::detail::GroupLife life_;
  GroupCoordinator& stages_;
  StageExchangeOptions options_;
};

}  // namespace rankmesh::exchange

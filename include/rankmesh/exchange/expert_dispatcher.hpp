// SPDX-License-Identifier: BSD-3-Clause
// Sends tokens to the ranks of their experts, and returns the results of the experts.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/exchange/expert_map.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange {

namespace detail {
class RoutePlanner;
}

/// Memory of weights for rows: the weights are float, or of the type of the rows.
template <class Weights, class Rows>
concept WeightsFor =
    Memory<Weights> && (rankmesh::detail::SameElements<Weights, std::span<float>> ||
                        rankmesh::detail::SameElements<Weights, Rows>);

/// The options of an ExpertDispatcher. They must be the same on all members.
struct ExpertDispatcherOptions {
  /// The number of rows in each local slot's block is rounded up to a multiple of `alignment`. The
  /// additional rows are zeros. Libraries for grouped matrix products may need such blocks.
  std::int64_t alignment = 1;
  /// If `capacity` is set, each rank sends exactly this number of rows to each slot. All shapes are
  /// then fixed: every slot's block has size() x capacity rows plus padding. If a rank has fewer
  /// tokens for a slot, the remaining rows are zeros. If a rank has more tokens for a slot, the
  /// choices of the last tokens are dropped, as in GShard (arXiv 2006.16668). If `capacity` is
  /// empty, there is no limit, and no choice is dropped.
  std::optional<std::int64_t> capacity{};
};

/// Describes the route of one step's tokens: the rows that this rank sends to each other rank, and
/// the rows that it receives. A route can be passed to dispatch() and combine() any number of
/// times, for example in the forward and the backward pass. A route is a value and does not change
/// if the dispatcher gets another map.
class RANKMESH_API ExpertRoute {
 public:
  /// Returns the number of tokens of this rank, T.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Returns the number of choices per token, k.
  [[nodiscard]] std::int64_t top_k() const { return top_k_; }
  /// Returns the number of rows in the blocks of this rank's slots, including padding.
  [[nodiscard]] std::int64_t rows() const { return offsets_.back(); }
  /// Returns slots_per_rank() + 1 numbers: the first row of each local slot's block, and the end of
  /// the last block.
  [[nodiscard]] std::span<const std::int64_t> offsets() const { return offsets_; }
  /// Returns the number of rows of each local slot without padding. If a capacity is set, each
  /// number is size() x capacity. The rows of a block are ordered by sending rank, then by token.
  [[nodiscard]] std::span<const std::int64_t> counts() const { return counts_; }
  /// Returns the logical expert of each local slot, or ExpertMap::empty.
  [[nodiscard]] std::span<const std::int32_t> experts() const { return experts_; }
  /// Returns how many of this rank's T x k choices are not sent. A choice is not sent if its id is
  /// -1, or if it exceeds the capacity.
  [[nodiscard]] std::int64_t dropped() const { return dropped_; }
  /// Returns whether the given choice of a token is sent to an expert.
  [[nodiscard]] bool is_sent(std::int64_t token, std::int64_t choice) const {
    return sum_[static_cast<std::size_t>(token * top_k_ + choice)] >= 0;
  }

 private:
  friend class ExpertDispatcher;
  friend class detail::RoutePlanner;
  struct OnDevice;  // the four lists below in device memory

  std::int64_t tokens_ = 0, top_k_ = 0, dropped_ = 0;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int64_t> counts_;
  std::vector<std::int32_t> experts_;
  // The number of rows that are sent to and received from each rank. The entry of this rank itself
  // is 0, because its rows are copied directly.
  std::vector<std::int64_t> sent_, received_;
  // Each list has one entry for each row that a kernel writes (exchange/kernels/expert_rows.hpp).
  // The entry is the number of the row that the kernel reads.
  // - pack_: for the rows to send. An entry is a choice.
  // - place_: for the rows of this rank's experts. An entry is a received row, or all_received_
  //   plus a choice of this rank.
  // - unplace_: for the results to send back. An entry is a row of this rank's experts.
  // - sum_: for the results to add up. An entry is a returned row, or all_sent_ plus a row of this
  //   rank's experts.
  std::vector<std::int64_t> pack_, place_, unplace_, sum_;
  std::int64_t all_sent_ = 0, all_received_ = 0;
  bool is_direct_ = false;  // with one slot per rank, rows are received in their final place
  std::shared_ptr<const OnDevice> on_device_;
};

/// Implements expert parallelism in one group: sends the row of each token to the ranks of the
/// experts that a router has chosen for it. Afterwards, combine() returns the weighted sum of the
/// experts' results to the rank of the token. docs/experts.md describes the memory, too.
///
/// ```
/// ExpertDispatcher experts{mesh["ep"], ExpertMap::contiguous(64, mesh["ep"].size())};
/// const ExpertRoute route = experts.route(ids, 2);  // ids: T x 2, row-major; -1 is no choice
/// std::vector<float> rows(route.rows() * H);
/// experts.dispatch(route, tokens, rows);
/// for (slot ...) run_expert(rows.data() + route.offsets()[slot] * H, route.counts()[slot]);
/// experts.combine(route, rows, weights, out);       // weights: T x 2; out: T x H
/// ```
///
/// Rows have H elements (float32, float16, bfloat16 or float64). The number T of this rank's tokens
/// may differ between ranks and may be 0. All functions except map() and reserve() are collective
/// over the group. On host memory, they block, except the forms with _async. On device memory, all
/// but route() are queued on the stream; all use the same memory for packed rows, so make them on
/// one stream, or order the streams by events. Thread safety: the rules of the group apply.
class RANKMESH_API ExpertDispatcher {
 public:
  /// Creates a dispatcher. Collective over the group; blocks. Cost: one all-reduce of 32 bytes,
  /// which compares the arguments of all ranks.
  /// @param group  A group that must outlive the dispatcher. Afterwards, all functions except map()
  /// and reserve() throw ClosedError.
  /// @throws UsageError if the map is for a different number of ranks, or if the alignment or the
  /// capacity is less than 1.
  /// @throws MismatchError on every rank if the ranks pass different maps or options; the error
  /// lists them. If the arguments are invalid on some ranks only, the other ranks throw
  /// MismatchError too.
  ExpertDispatcher(GroupCoordinator& group, ExpertMap map, ExpertDispatcherOptions options = {});
  ~ExpertDispatcher();
  /// Takes over the dispatcher. The source can then only be destroyed or assigned to.
  ExpertDispatcher(ExpertDispatcher&&) noexcept;
  /// Takes over the dispatcher. The source can then only be destroyed or assigned to.
  ExpertDispatcher& operator=(ExpertDispatcher&&) noexcept;

  /// Returns the current map of the experts.
  [[nodiscard]] const ExpertMap& map() const;
  /// Sets the map for later calls of route(), for example after experts have been moved, or after
  /// popular experts have been given more slots. Existing routes keep their map. The caller must
  /// move the weights of the experts. Collective over the group; blocks. Cost: one all-reduce of 32
  /// bytes.
  /// @throws UsageError if the map is for a different number of ranks; MismatchError on every rank
  /// if the ranks pass different maps. After an exception, the dispatcher keeps its previous map.
  void set_map(ExpertMap map);

  /// Plans the rows that each rank sends to every other rank. The tokens of an expert with several
  /// slots use these slots in turn, and different ranks begin with different slots. Cost: one
  /// all-to-all of 8 bytes per slot, or no communication if a capacity is set.
  /// @param ids  T x k logical experts, row-major; the id -1 means no choice.
  /// @throws UsageError if an id is outside -1 .. experts-1, or if `top_k` does not divide the
  /// number of ids.
  /// @throws MismatchError if the arguments are invalid on another rank and no capacity is set.
  [[nodiscard]] ExpertRoute route(std::span<const std::int32_t> ids, std::int64_t top_k);
  /// Plans a route for ids in device memory. The host waits for the stream; it waits at
  /// most default_timeout().
  [[nodiscard]] ExpertRoute route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                  StreamRef stream);

  /// Sends the rows of `tokens` (T x H) to the ranks of their experts. `rows` (route.rows() x H)
  /// receives the rows for this rank's experts; padding is set to zero. `tokens` and `rows` must
  /// not overlap. Cost: one all_to_all_v, or no communication in a group of one rank.
  /// @throws UsageError if a size does not fit the route, or if the route is one of a group of
  /// another size; UnsupportedError if the element type is not supported.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch(const ExpertRoute& route, In&& tokens, Out&& rows, StreamRef stream = {}) {
    const auto in = rankmesh::detail::row_major_buffer_of(tokens);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, false,
             Buffer{rankmesh::detail::row_major_buffer_of(rows)}, stream);
  }
  /// Starts dispatch() on host memory; returns a Work. The route, `tokens` and `rows` must stay
  /// valid until the Work is complete, and `tokens` must not change. Several operations may be in
  /// flight, so that the experts of one part of the tokens compute while the rows of the next part
  /// move. On device memory, dispatch() does not block the host: call it on a stream of its own
  /// instead.
  template <HostMemory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] Work dispatch_async(const ExpertRoute& route, In&& tokens, Out&& rows) {
    static_assert(rankmesh::detail::is_borrowed<In> && rankmesh::detail::is_borrowed<Out>,
                  "the tokens and the rows need variables that stay valid until wait()");
    const auto in = rankmesh::detail::row_major_buffer_of(tokens);
    return start_dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind},
                          Buffer{rankmesh::detail::row_major_buffer_of(rows)});
  }
  /// Sends a separate row for each choice. The shape of `choices` is T x k x H. Use this function
  /// to send the gradients of the experts' results (weight x gradient of `out`), or to send the
  /// weights (H = 1).
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch_choices(const ExpertRoute& route, In&& choices, Out&& rows, StreamRef stream = {}) {
    const auto in = rankmesh::detail::row_major_buffer_of(choices);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, true,
             Buffer{rankmesh::detail::row_major_buffer_of(rows)}, stream);
  }
  /// Returns the experts' results from `rows` (route.rows() x H) to the ranks of the tokens, and
  /// sums them in `out` (T x H). The row out[t] is the sum of weights[t, j] times the result of
  /// choice j, for all choices j of token t. The sum is computed in the order of j in float32, or
  /// in float64 if the rows are float64; weights of 16 bits are widened first. Dropped choices add
  /// nothing, and the weights of the other choices are not scaled up. Padding is not read. Cost:
  /// one all_to_all_v.
  /// @param weights  The weights of the choices (T x k), in the same kind of memory as `rows`:
  /// float, or of the type of the rows.
  template <Memory In, WritableMemory Out, Memory Weights>
    requires MatchingMemory<In, Out>
  void combine(const ExpertRoute& route, In&& rows, const Weights& weights, Out&& out,
               StreamRef stream = {}) {
    static_assert(WeightsFor<const Weights&, In>, "weights are float, or of the type of the rows");
    const auto in = rankmesh::detail::row_major_buffer_of(rows);
    const auto w = rankmesh::detail::row_major_buffer_of(weights);
    combine(route, ConstBuffer{in.data, in.count, in.type, in.kind},
            ConstBuffer{w.data, w.count, w.type, w.kind},
            Buffer{rankmesh::detail::row_major_buffer_of(out)}, stream);
  }
  /// Refuses calls in which the route does not come first, at compile time.
  template <class First, class... Others>
    requires(!std::same_as<std::remove_cvref_t<First>, ExpertRoute>)
  RANKMESH_REFUSE("the route comes first: write dispatch(route, tokens, rows)") void dispatch(
      const First&, const Others&...) {}
  /// Refuses calls in which the route does not come first, at compile time.
  template <class First, class... Others>
    requires(!std::same_as<std::remove_cvref_t<First>, ExpertRoute>)
  RANKMESH_REFUSE("the route comes first: write combine(route, rows, weights, out)") void combine(
      const First&, const Others&...) {}
  /// Starts combine() on host memory; returns a Work. The route, `rows` and `out` must stay valid
  /// until the Work is complete, and `rows` must not change. The weights are copied.
  template <HostMemory In, WritableMemory Out, HostMemory Weights>
    requires MatchingMemory<In, Out>
  [[nodiscard]] Work combine_async(const ExpertRoute& route, In&& rows, const Weights& weights,
                                   Out&& out) {
    static_assert(WeightsFor<const Weights&, In>, "weights are float, or of the type of the rows");
    static_assert(rankmesh::detail::is_borrowed<In> && rankmesh::detail::is_borrowed<Out>,
                  "the rows and the result need variables that stay valid until wait()");
    const auto in = rankmesh::detail::row_major_buffer_of(rows);
    const auto w = rankmesh::detail::row_major_buffer_of(weights);
    return start_combine(route, ConstBuffer{in.data, in.count, in.type, in.kind},
                         ConstBuffer{w.data, w.count, w.type, w.kind},
                         Buffer{rankmesh::detail::row_major_buffer_of(out)});
  }
  /// Returns a row of `rows` (route.rows() x H) for each choice. This function is the inverse of
  /// dispatch_choices(), and does the same as combine() without the sum. The shape of `choices` is
  /// T x k x H; the rows of choices that are not sent are set to zero. Use this function with H = 1
  /// for the gradient of the weights, which the router needs. The experts then return one number
  /// per row: the scalar product of their result and the gradient of `out`. Cost: one all_to_all_v.
  /// @throws UsageError if a size does not fit the route; UnsupportedError if the element type is
  /// not supported.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void collect_choices(const ExpertRoute& route, In&& rows, Out&& choices, StreamRef stream = {}) {
    const auto in = rankmesh::detail::row_major_buffer_of(rows);
    collect(route, ConstBuffer{in.data, in.count, in.type, in.kind},
            Buffer{rankmesh::detail::row_major_buffer_of(choices)}, stream);
  }

  /// Allocates the scratch memory that `route` needs for rows of `row_bytes` bytes. dispatch(),
  /// combine() and their forms for choices then allocate nothing, so they can be captured into a
  /// CUDA graph. The graph uses the scratch memory and the route. Therefore the route must outlive
  /// the graph, and no later call may need more scratch memory. Rows in symmetric memory, with one
  /// slot per rank, need more: before a capture, make each call once with the largest route.
  /// Local; waits for no work on the device.
  void reserve(const ExpertRoute& route, std::int64_t row_bytes, MemoryKind kind);

 private:
  struct State;
  // @throws ClosedError if the group is gone.
  [[nodiscard]] State& state() const;
  void dispatch(const ExpertRoute& route, ConstBuffer tokens, bool is_per_choice, Buffer rows,
                StreamRef stream);
  [[nodiscard]] Work start_dispatch(const ExpertRoute& route, ConstBuffer tokens, Buffer rows);
  void combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights, Buffer out,
               StreamRef stream);
  [[nodiscard]] Work start_combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights,
                                   Buffer out);
  void collect(const ExpertRoute& route, ConstBuffer rows, Buffer choices, StreamRef stream);
  [[nodiscard]] ExpertRoute plan(std::span<const std::int32_t> ids, std::int64_t top_k);
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange

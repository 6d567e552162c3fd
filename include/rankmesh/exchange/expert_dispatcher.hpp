// SPDX-License-Identifier: BSD-3-Clause
// Sends tokens to their experts and the results back.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/exchange/expert_map.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"

namespace rankmesh::exchange {

namespace detail {
class RoutePlanner;
}

struct ExpertDispatcherOptions {
  /// The block of rows of each local expert is padded with zeros to a multiple of this number, as
  /// grouped matrix products need it.
  std::int64_t alignment = 1;
  /// The number of rows that each rank sends to each slot. All shapes are then fixed: every block
  /// has size() x capacity rows plus padding. Missing rows are zeros. Choices beyond the capacity
  /// are dropped, the last tokens first, as in GShard (arXiv 2006.16668). If it is empty, there is
  /// no limit, and no choice is dropped.
  std::optional<std::int64_t> capacity;
};

/// Describes the route of one step's tokens: it lists the rows that this rank sends to each rank,
/// and the rows that this rank receives. dispatch() and combine() use it, any number of times
/// (forward and backward pass). A route is a value and does not change when the dispatcher gets
/// another map.
class RANKMESH_API ExpertRoute {
 public:
  /// Return the numbers T and k of the ids that route() received.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] std::int64_t top_k() const { return top_k_; }
  /// Returns the number of rows on this rank, which are the blocks of its slots, including padding.
  [[nodiscard]] std::int64_t rows() const { return offsets_.back(); }
  /// Returns the first row of each local slot's block, and the end: slots_per_rank() + 1 numbers.
  [[nodiscard]] std::span<const std::int64_t> offsets() const { return offsets_; }
  /// Returns the number of rows of each local slot without padding. With a capacity, each number is
  /// size() x capacity. Rows in a block are ordered by sending rank, then by token.
  [[nodiscard]] std::span<const std::int64_t> counts() const { return counts_; }
  /// Returns the logical expert of each local slot, or ExpertMap::empty.
  [[nodiscard]] std::span<const std::int32_t> experts() const { return experts_; }
  /// Returns how many of this rank's T x k choices are not sent. These are the choices with the id
  /// -1 and the choices beyond the capacity.
  [[nodiscard]] std::int64_t dropped() const { return dropped_; }
  /// Returns whether a choice of a token is sent.
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
  // The rows that are exchanged with each rank. It is 0 for the rank itself, whose rows are
  // copied directly.
  std::vector<std::int64_t> sent_, received_;
  // Each list has an entry per row that a kernel writes (device/kernels/expert_rows.hpp). The entry
  // is the row to copy from.
  // - pack: writes the rows to send; an entry is a choice.
  // - place: writes the rows of this rank's experts; an entry is a received row, or a choice of
  //   this rank plus all_received_.
  // - unplace: writes the rows to send back; an entry is a row of this rank's experts.
  // - sum: adds up the results; an entry is a row that came back, or a row of this rank's experts
  //   plus all_sent_.
  std::vector<std::int64_t> pack_, place_, unplace_, sum_;
  std::int64_t all_sent_ = 0, all_received_ = 0;
  bool is_direct_ = false;  // one slot per rank: rows are received in their final place
  std::shared_ptr<const OnDevice> on_device_;
};

/// Expert parallelism of one group: sends each token's row to the ranks of the experts that a
/// router chose for it, and returns the experts' results, weighted and summed.
///
/// Tokens are rows of H elements (float32, float16, bfloat16 or float64). This rank has T tokens; T
/// may differ between ranks and may be 0. Each token has k choices. Rows for the rank itself are
/// not sent. The other rows are copied once by the sender and once by the receiver; with one slot
/// per rank, the receiver does not copy.
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
/// All functions except map() and reserve() are collective over the group. On host memory they
/// block. On device memory, route() waits for the stream, because the host sorts the choices, while
/// dispatch() and combine() are queued on the stream. Use one stream, or order the streams by
/// events. The kernels need nvcc when rankmesh is built.
///
/// Memory: one row of scratch memory for each row that is sent or received. The dispatcher keeps
/// this memory and enlarges it when necessary; reserve() allocates it in advance. Thread safety:
/// the rules of the group apply.
class RANKMESH_API ExpertDispatcher {
 public:
  /// Creates a dispatcher. Collective over the group; blocks. Cost: one all-reduce of 32 bytes,
  /// which compares the arguments of all ranks.
  /// @param group  A group that must outlive the dispatcher.
  /// @throws UsageError  The map is for another number of ranks, or the alignment or the capacity
  /// is below 1.
  /// @throws MismatchError  The ranks pass different maps or options. Every rank throws it.
  ExpertDispatcher(GroupCoordinator& group, ExpertMap map, ExpertDispatcherOptions options = {});
  ~ExpertDispatcher();
  ExpertDispatcher(ExpertDispatcher&&) noexcept;
  ExpertDispatcher& operator=(ExpertDispatcher&&) noexcept;

  [[nodiscard]] const ExpertMap& map() const;
  /// Sets the map for the next route(), for example after experts have moved or popular experts
  /// have got more slots. Existing routes keep their map. The caller must move the experts'
  /// weights. Collective over the group; blocks. Cost: one all-reduce of 32 bytes.
  /// @throws MismatchError  The ranks pass different maps. Every rank throws it, and the dispatcher
  ///                        keeps its previous map.
  void set_map(ExpertMap map);

  /// Plans the rows that each rank sends to each other rank. The tokens of an expert with several
  /// slots use these slots in turn, and different ranks begin with different slots. Cost: one
  /// all-to-all of 8 bytes per slot. With a capacity, there is no communication.
  /// @param ids  T x k logical experts, row-major; the id -1 means no choice.
  /// @throws UsageError  An id is outside -1 .. experts-1, or top_k does not divide the number
  /// of ids.
  [[nodiscard]] ExpertRoute route(std::span<const std::int32_t> ids, std::int64_t top_k);
  /// Plans a route of ids in device memory. The host waits for the stream, with the
  /// default timeout.
  [[nodiscard]] ExpertRoute route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                  StreamRef stream);

  /// Sends the rows of `tokens` (T x H) to their experts. Each rank receives its rows in `rows`
  /// (route.rows() x H), where padding is set to zero. `tokens` and `rows` must not overlap. Cost:
  /// one all_to_all_v, or no communication in a group of one rank.
  /// @throws UsageError  A size does not fit the route. @throws UnsupportedError  The type of the
  ///                     elements is not supported.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch(const ExpertRoute& route, In&& tokens, Out&& rows, StreamRef stream = {}) {
    const auto in = buffer_of(tokens);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, false,
             Buffer{buffer_of(rows)}, stream);
  }
  /// Sends a separate row for each choice: `choices` is T x k x H. Use it for the gradients of the
  /// experts' results (weight x gradient of out), or for the weights (H = 1).
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch_choices(const ExpertRoute& route, In&& choices, Out&& rows, StreamRef stream = {}) {
    const auto in = buffer_of(choices);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, true, Buffer{buffer_of(rows)},
             stream);
  }
  /// Returns the experts' results: out[t] (T x H) becomes the sum over the choices j of weights[t,
  /// j] x the row of that choice in `rows` (route.rows() x H). The sum is computed in the order of
  /// j, in float32 (in float64 for float64 rows). Dropped choices add nothing, and the other
  /// weights are not scaled up. Padding is not read. Cost: one all_to_all_v.
  /// @param weights  T x k, in the same kind of memory as rows.
  template <Memory In, WritableMemory Out, Memory Weights>
    requires MatchingMemory<In, Out>
  void combine(const ExpertRoute& route, In&& rows, const Weights& weights, Out&& out,
               StreamRef stream = {}) {
    static_assert(std::same_as<std::remove_cv_t<ElementOf<const Weights&>>, float>,
                  "weights are float");
    const auto in = buffer_of(rows);
    const auto w = buffer_of(weights);
    combine(route, ConstBuffer{in.data, in.count, in.type, in.kind},
            ConstBuffer{w.data, w.count, w.type, w.kind}, Buffer{buffer_of(out)}, stream);
  }

  /// Allocates enough scratch memory for a route and rows of `row_bytes` bytes, so that dispatch()
  /// and combine() allocate nothing. Local.
  void reserve(const ExpertRoute& route, std::int64_t row_bytes, MemoryKind kind);

 private:
  struct State;
  void dispatch(const ExpertRoute& route, ConstBuffer tokens, bool is_per_choice, Buffer rows,
                StreamRef stream);
  void combine(const ExpertRoute& route, ConstBuffer rows, ConstBuffer weights, Buffer out,
               StreamRef stream);
  [[nodiscard]] ExpertRoute plan(std::span<const std::int32_t> ids, std::int64_t top_k);
  std::unique_ptr<State> state_;
};

}  // namespace rankmesh::exchange

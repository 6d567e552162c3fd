// Tokens to their experts and back.
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

struct ExpertDispatcherOptions {
  /// Each local expert's block of rows is padded with zeros to a multiple of this (grouped matrix
  /// products want one).
  std::int64_t alignment = 1;
  /// At most so many rows from each rank to each slot. All shapes are then fixed: every block has
  /// size() x capacity rows (padded), zeros where there are fewer, and what is beyond is dropped,
  /// the last tokens first (GShard, arXiv 2006.16668, drops in the same order). Nothing: as many as
  /// there are, none is dropped.
  std::optional<std::int64_t> capacity;
};

/// Where one step's tokens go, and the rows that come: what dispatch() and combine() follow, as
/// often as one likes (forward, backward). A value; it keeps the map that it was made with.
class RANKMESH_API ExpertRoute {
 public:
  /// T and k of the ids that it was made of.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] std::int64_t top_k() const { return top_k_; }
  /// Rows on this rank, padding included: the blocks of its slots, one after the other.
  [[nodiscard]] std::int64_t rows() const { return offsets_.back(); }
  /// Where the block of each local slot begins, in rows; slots_per_rank() + 1 numbers.
  [[nodiscard]] std::span<const std::int64_t> offsets() const { return offsets_; }
  /// Rows of each local slot without padding (with a capacity: size() x capacity). Within a block
  /// they stand by sending rank, then by token.
  [[nodiscard]] std::span<const std::int64_t> counts() const { return counts_; }
  /// The logical expert of each local slot, ExpertMap::empty for none.
  [[nodiscard]] std::span<const std::int32_t> experts() const { return experts_; }
  /// How many of this rank's T x k choices go nowhere: those with id -1, and those beyond the
  /// capacity.
  [[nodiscard]] std::int64_t dropped() const { return dropped_; }
  /// For each of the T x k choices whether it is sent.
  [[nodiscard]] bool is_sent(std::int64_t token, std::int64_t choice) const {
    return sum_[static_cast<std::size_t>(token * top_k_ + choice)] >= 0;
  }

 private:
  friend class ExpertDispatcher;
  struct OnDevice;  // the lists below in device memory

  std::int64_t tokens_ = 0, top_k_ = 0, dropped_ = 0;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int64_t> counts_;
  std::vector<std::int32_t> experts_;
  // Rows exchanged with each rank; 0 with itself, whose rows never leave the caller's memory.
  std::vector<std::int64_t> sent_, received_;
  // As device/kernels/expert_rows.hpp has them. Rows that are sent: of which choice. Rows of this
  // rank: of which received row or, from all_received_ on, choice. Rows that are sent back: of
  // which row. Choices: which row that came back or, from all_sent_ on, row of this rank.
  std::vector<std::int64_t> pack_, place_, unplace_, sum_;
  std::int64_t all_sent_ = 0, all_received_ = 0;
  bool is_direct_ = false;  // one slot per rank: rows are received in their place
  std::shared_ptr<const OnDevice> on_device_;
};

/// Expert parallelism of one group: brings every token's row to the ranks of the experts that were
/// chosen for it, and the experts' results back, weighted and summed. Tokens are rows of H elements
/// (float32, float16, bfloat16 or float64), T of them on this rank; T may differ between ranks and
/// be 0. k choices per token. Rows for the rank itself are not sent, and rows are copied once on
/// each side (with one slot per rank only on the sending one).
///
/// ```
/// ExpertDispatcher experts{mesh["ep"], ExpertMap::contiguous(64, mesh["ep"].size())};
/// const ExpertRoute route = experts.route(ids, 2);          // ids: T x 2, row-major, -1 for none
/// std::vector<float> rows(route.rows() * H);
/// experts.dispatch(route, tokens, rows);
/// for (slot ...) ...                                        // rows offsets[slot] .. +
/// counts[slot] experts.combine(route, rows, weights, out);               // weights: T x 2; out: T
/// x H
/// ```
///
/// Every function but the accessors is collective over the group, blocks on host memory, and is
/// ordered like the group's collectives. On device memory the choices are read on the host (route()
/// waits for the stream), and dispatch() and combine() are put on the stream; use one stream, or
/// order them by events. Kernels need CUDA's compiler when rankmesh is built.
///
/// Memory: for each row that is sent or received one row of scratch memory, kept and grown; on
/// devices that allocates, see reserve(). Thread safety: that of the group.
class RANKMESH_API ExpertDispatcher {
 public:
  /// Collective over the group: one all-reduce of 32 bytes finds out whether all passed the same.
  /// @param group  must outlive the dispatcher.
  /// @throws UsageError for a map of another number of ranks, an alignment or a capacity below 1;
  ///         MismatchError, on every rank, where ranks pass other maps or options.
  ExpertDispatcher(GroupCoordinator& group, ExpertMap map, ExpertDispatcherOptions options = {});
  ~ExpertDispatcher();
  ExpertDispatcher(ExpertDispatcher&&) noexcept;
  ExpertDispatcher& operator=(ExpertDispatcher&&) noexcept;

  [[nodiscard]] const ExpertMap& map() const;
  /// Another map from the next route() on: after moving experts, or giving hot ones more slots.
  /// Routes that were made before keep theirs. Moving the experts' weights is the caller's.
  /// Collective: one all-reduce of 32 bytes. @throws MismatchError, on every rank, where they
  /// differ, and the map stays.
  void set_map(ExpertMap map);

  /// Finds out which rows go where. Choices of an expert with several slots take these in turn,
  /// beginning with one that differs from rank to rank. Cost: one all-to-all of 8 bytes per slot
  /// (none with a capacity).
  /// @param ids  T x k logical experts, row-major; -1 is no choice.
  /// @throws UsageError for an id outside -1 .. experts-1, or ids that top_k does not divide.
  [[nodiscard]] ExpertRoute route(std::span<const std::int32_t> ids, std::int64_t top_k);
  /// The same for ids in device memory; waits on the host for the stream, with the default timeout.
  [[nodiscard]] ExpertRoute route(DeviceSpan<const std::int32_t> ids, std::int64_t top_k,
                                  StreamRef stream);

  /// Brings the rows of `tokens` (T x H) to their experts: `rows` (route.rows() x H), padding
  /// zeroed. The two must not overlap. Cost: one all_to_all_v; nothing is sent in a group of one.
  /// @throws UsageError for other sizes, UnsupportedError for other types.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch(const ExpertRoute& route, In&& tokens, Out&& rows, StreamRef stream = {}) {
    const auto in = buffer_of(tokens);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, false,
             Buffer{buffer_of(rows)}, stream);
  }
  /// The same with a row of its own for each choice: `choices` is T x k x H. For the gradients of
  /// the experts' results (weight x gradient of out), or for the weights themselves (H = 1).
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void dispatch_choices(const ExpertRoute& route, In&& choices, Out&& rows, StreamRef stream = {}) {
    const auto in = buffer_of(choices);
    dispatch(route, ConstBuffer{in.data, in.count, in.type, in.kind}, true, Buffer{buffer_of(rows)},
             stream);
  }
  /// The way back: out[t] (T x H) becomes the sum over the choices j of weights[t, j] x the row
  /// that expert left in `rows` (route.rows() x H), in the order of j and in float32 (float64 for
  /// such rows). What was dropped adds nothing; weights are not scaled up for it. Padding is not
  /// read. Cost: one all_to_all_v.
  /// @param weights  T x k, in the same memory as rows.
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

  /// Makes the scratch memory large enough for this route and rows of so many bytes, so that
  /// dispatch() and combine() allocate nothing. Local.
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

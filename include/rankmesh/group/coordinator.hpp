// One rank's handle on one group.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/axis.hpp"
#include "rankmesh/group/bootstrap_report.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/peer.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/call.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

struct ncclComm;  // what an ncclComm_t points to

namespace rankmesh {

class Transport;

namespace detail {
struct Channel;
struct MeshServices;
class Router;
}  // namespace detail

/// Routes each operation of one group to the transport that carries it.
///
/// Collectives are collective over the group: every member calls them with matching sizes, in the
/// same order per group, and all ranks' orders over all groups fit one global order. They block
/// until the caller's part is done. Buffers are contiguous ranges in host memory (std::span,
/// std::vector, ...) or a DeviceSpan; in and out have the same element type. Counts are 64-bit. `n`
/// below is size().
///
/// The `_async` forms return a Work at once. They take the same buffers, which must outlive it; a
/// container that is moved in is kept by the Work and given back by take(). The order of issue is
/// that of the calls, whatever completes first.
///
/// In place: pass the same memory as input and output (all_gather, gather: the own block of the
/// output; scatter: the own block of the root's input; on devices reduce_scatter: the own block of
/// the input), on all members alike. NCCL has no all_to_all in place. Any other overlap is refused.
///
/// Reductions of 16- and 8-bit floats on the host are done in float32 and rounded once; they take 4
/// bytes of scratch memory per element of in and out, and float32 travels.
///
/// @throws UsageError (wrong sizes, overlap, a rank outside the group, two threads at once) before
/// anything is
///         sent; ClosedError after close() or a failure; NoDeviceError for device memory where no
///         device transport is there; UnsupportedError for arithmetic on devices that NCCL has not;
///         mpi::MpiError; TimeoutError where the mesh has the option `deadline`, after which the
///         group is broken.
/// Thread safety: one thread at a time per mesh; a second one is refused.
class RANKMESH_API GroupCoordinator {
 public:
  /// The mesh makes coordinators.
  GroupCoordinator(std::string name, std::shared_ptr<detail::Channel> channel,
                   std::shared_ptr<detail::MeshServices> services);
  GroupCoordinator(const GroupCoordinator&) = delete;
  GroupCoordinator& operator=(const GroupCoordinator&) = delete;
  ~GroupCoordinator();

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] RankInGroup rank_in_group() const noexcept { return rank_in_group_; }
  /// The members' ranks in the world, in group order.
  [[nodiscard]] const RankSet& ranks() const noexcept;
  /// This rank's number in the world.
  [[nodiscard]] Rank rank() const noexcept;
  /// This rank's number among the mesh's ranks on its node.
  [[nodiscard]] std::int32_t local_rank() const noexcept;
  /// World ranks of the first and the last member, and of the neighbours (the group is a ring).
  [[nodiscard]] Rank first_rank() const { return ranks().front(); }
  [[nodiscard]] Rank last_rank() const { return ranks().back(); }
  [[nodiscard]] Rank next_rank() const {
    return ranks().at(Peer{rankmesh::next}.resolve(rank_in_group_, size_).value());
  }
  [[nodiscard]] Rank prev_rank() const {
    return ranks().at(Peer{rankmesh::prev}.resolve(rank_in_group_, size_).value());
  }
  [[nodiscard]] bool is_first() const noexcept { return rank_in_group_ == RankInGroup{0}; }
  [[nodiscard]] bool is_last() const noexcept { return rank_in_group_.value() + 1 == size_; }
  /// The group's communicator (MPI_COMM_SELF for a group of one), owned by the mesh. Collectives
  /// that the caller issues on it count in the order of issue; point-to-point tags are the caller's
  /// below 16384.
  [[nodiscard]] MPI_Comm native_mpi() const;

  /// The group's NCCL communicator (an ncclComm_t), owned by the mesh; null for a group of one.
  /// Unless the name's options say `blocking`, it is non-blocking: after a call of your own poll
  /// ncclCommGetAsyncError to success before the next call of either side. @throws NoDeviceError
  /// where there is none, or it is not open yet.
  [[nodiscard]] ncclComm* native_nccl() const;
  /// The group's own stream, with the priority that the name's options give; made when first asked
  /// for, and destroyed by close(). @throws NoDeviceError.
  [[nodiscard]] StreamRef stream() const;
  /// The host waits until everything on the stream has run, and looks at the communicator
  /// meanwhile: where NCCL failed asynchronously this throws, while a wait for the stream alone
  /// would return as if all were well.
  /// @throws nccl::NcclError, after which the group is broken; TimeoutError after the mesh's
  /// timeout; NoDeviceError.
  void wait(StreamRef stream);
  /// How the NCCL communicator came to be; null where there is none.
  [[nodiscard]] const BootstrapReport* bootstrap() const noexcept;

  /// Returns when all members have come.
  void barrier() { run_ordinary<Operation::barrier>({.operation = Operation::barrier}); }
  [[nodiscard]] Work barrier_async() { return start({.operation = Operation::barrier}); }

  /// The root's values, everywhere.
  template <WritableMemory M>
  void broadcast(M&& values, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::broadcast, M>(calls::broadcast(values, root, stream));
  }
  template <WritableMemory M>
  [[nodiscard]] auto broadcast_async(M&& values, RankInGroup root, StreamRef stream = {}) {
    return start_one(std::forward<M>(values),
                     [&](auto& v) { return calls::broadcast(v, root, stream); });
  }

  /// Element-wise over the members, in place.
  template <WritableMemory M>
  void all_reduce(M&& values, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::all_reduce, M>(calls::all_reduce(values, values, op, stream));
  }
  /// Element-wise over the members; out has as many elements as in.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::all_reduce, In, Out>(calls::all_reduce(in, out, op, stream));
  }
  /// The same on device memory: ordered after what the stream holds; the host does not wait for it.
  template <WritableMemory M>
    requires detail::is_device_span<std::remove_cvref_t<M>>
  void all_reduce(M&& values, StreamRef stream, ReduceOp op = ReduceOp::sum) {
    all_reduce(values, op, stream);
  }
  template <WritableMemory M>
  [[nodiscard]] auto all_reduce_async(M&& values, ReduceOp op = ReduceOp::sum,
                                      StreamRef stream = {}) {
    return start_one(std::forward<M>(values),
                     [&](auto& v) { return calls::all_reduce(v, v, op, stream); });
  }
  template <WritableMemory M>
    requires detail::is_device_span<std::remove_cvref_t<M>>
  [[nodiscard]] auto all_reduce_async(M&& values, StreamRef stream, ReduceOp op = ReduceOp::sum) {
    return all_reduce_async(std::forward<M>(values), op, stream);
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_reduce_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                      StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::all_reduce(i, o, op, stream); });
  }

  /// Element-wise over the members, at the root; in place there.
  template <WritableMemory M>
  void reduce(M&& values, RankInGroup root, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::reduce, M>(calls::reduce(values, values, root, op, stream));
  }
  /// Element-wise over the members; out has as many elements as in at the root and is not touched
  /// elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce(In&& in, Out&& out, RankInGroup root, ReduceOp op = ReduceOp::sum,
              StreamRef stream = {}) {
    run_typed<Operation::reduce, In, Out>(calls::reduce(in, out, root, op, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto reduce_async(In&& in, Out&& out, RankInGroup root, ReduceOp op = ReduceOp::sum,
                                  StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::reduce(i, o, root, op, stream); });
  }

  /// Every member's in, one after the other in group order; out has n times as many elements.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, StreamRef stream = {}) {
    run_typed<Operation::all_gather, In, Out>(calls::two(Operation::all_gather, in, out, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_async(In&& in, Out&& out, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::two(Operation::all_gather, i, o, stream);
    });
  }

  /// The sum (or another reduction) of everyone's in; member k gets block k. in has n times as many
  /// elements as out.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run_typed<Operation::reduce_scatter, In, Out>(calls::reduce_scatter(in, out, op, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, ReduceOp op = ReduceOp::sum,
                                          StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out),
                     [&](auto& i, auto& o) { return calls::reduce_scatter(i, o, op, stream); });
  }

  // The same with a function of the caller's: `T combine(const T& left, const T& right)` on values
  // of any trivially copyable type T, in host memory. It must be associative; unless it is said to
  // be commutative the values are combined in group order. It is called on every member, in no
  // certain places. An exception of its does not pass through MPI: the operation ends everywhere,
  // and throws a UsageError with that exception nested on the members where the function threw; all
  // values are then meaningless, and the others are not told. Costs one MPI_Op and one datatype per
  // call.

  template <WritableHostValues M, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<M>>
  void all_reduce(M&& values, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = user_reduction<M>(combine, commutative);
    run(calls::user(Operation::all_reduce, values, values, {}, reduction));
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void all_reduce(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = user_reduction<In, Out>(combine, commutative);
    run(calls::user(Operation::all_reduce, in, out, {}, reduction));
  }
  template <WritableHostValues M, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<M>>
  [[nodiscard]] auto all_reduce_async(M&& values, F&& combine,
                                      Commutative commutative = Commutative::no) {
    auto reduction = kept_reduction<M>(combine, commutative);
    return start_one(
        std::forward<M>(values),
        [&](auto& v) { return calls::user(Operation::all_reduce, v, v, {}, *reduction); },
        reduction);
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto all_reduce_async(In&& in, Out&& out, F&& combine,
                                      Commutative commutative = Commutative::no) {
    return start_user(Operation::all_reduce, std::forward<In>(in), std::forward<Out>(out), {},
                      combine, commutative);
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void reduce(In&& in, Out&& out, RankInGroup root, F&& combine,
              Commutative commutative = Commutative::no) {
    auto reduction = user_reduction<In, Out>(combine, commutative);
    run(calls::user(Operation::reduce, in, out, root, reduction));
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto reduce_async(In&& in, Out&& out, RankInGroup root, F&& combine,
                                  Commutative commutative = Commutative::no) {
    return start_user(Operation::reduce, std::forward<In>(in), std::forward<Out>(out), root,
                      combine, commutative);
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  void reduce_scatter(In&& in, Out&& out, F&& combine, Commutative commutative = Commutative::no) {
    auto reduction = user_reduction<In, Out>(combine, commutative);
    run(calls::user(Operation::reduce_scatter, in, out, {}, reduction));
  }
  template <HostValues In, WritableHostValues Out, class F>
    requires ReductionFunction<F, std::ranges::range_value_t<Out>>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, F&& combine,
                                          Commutative commutative = Commutative::no) {
    return start_user(Operation::reduce_scatter, std::forward<In>(in), std::forward<Out>(out), {},
                      combine, commutative);
  }

  /// Every member's in at the root, in group order; out has n times as many elements there, is
  /// ignored elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::gather, In, Out>(calls::rooted(Operation::gather, in, out, root, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_async(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::rooted(Operation::gather, i, o, root, stream);
    });
  }

  /// Block k of the root's in goes to member k; in has n times as many elements as out there, is
  /// ignored elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run_typed<Operation::scatter, In, Out>(
        calls::rooted(Operation::scatter, in, out, root, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_async(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::rooted(Operation::scatter, i, o, root, stream);
    });
  }

  /// Block k of in goes to member k; block k of out comes from member k. Equal sizes, divisible by
  /// n.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_to_all(In&& in, Out&& out, StreamRef stream = {}) {
    run_typed<Operation::all_to_all, In, Out>(calls::two(Operation::all_to_all, in, out, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_to_all_async(In&& in, Out&& out, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::two(Operation::all_to_all, i, o, stream);
    });
  }

  // The same along any axis of a row-major array, on host and device memory; see Axis. Not in
  // place.

  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::two(Operation::all_gather, in, out, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_async(In&& in, Out&& out, const Axis& axis, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::two(Operation::all_gather, i, o, stream));
    });
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce_scatter(In&& in, Out&& out, const Axis& axis, ReduceOp op = ReduceOp::sum,
                      StreamRef stream = {}) {
    run(axis.along(calls::reduce_scatter(in, out, op, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto reduce_scatter_async(In&& in, Out&& out, const Axis& axis,
                                          ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::reduce_scatter(i, o, op, stream));
    });
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, RankInGroup root, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::gather, in, out, root, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_async(In&& in, Out&& out, RankInGroup root, const Axis& axis,
                                  StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::gather, i, o, root, stream));
    });
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, RankInGroup root, const Axis& axis, StreamRef stream = {}) {
    run(axis.along(calls::rooted(Operation::scatter, in, out, root, stream)));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_async(In&& in, Out&& out, RankInGroup root, const Axis& axis,
                                   StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return axis.along(calls::rooted(Operation::scatter, i, o, root, stream));
    });
  }

  // The same with blocks of different sizes. Every member passes the sizes of all blocks, the same
  // everywhere.

  /// Member k's in becomes block k of out, everywhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather_v(In&& in, Out&& out, const Blocks& blocks, StreamRef stream = {}) {
    run(calls::blocks_of_out(Operation::all_gather, in, out, blocks, {}, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_gather_v_async(In&& in, Out&& out, const Blocks& blocks,
                                        StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_out(Operation::all_gather, i, o, blocks, {}, stream);
    });
  }
  /// Member k gets the reduction of everyone's block k.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce_scatter_v(In&& in, const Blocks& blocks, Out&& out, ReduceOp op = ReduceOp::sum,
                        StreamRef stream = {}) {
    run(calls::blocks_of_in(Operation::reduce_scatter, in, out, blocks, {}, op, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto reduce_scatter_v_async(In&& in, const Blocks& blocks, Out&& out,
                                            ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_in(Operation::reduce_scatter, i, o, blocks, {}, op, stream);
    });
  }
  /// Member k's in becomes block k of out at the root; out is ignored elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather_v(In&& in, Out&& out, const Blocks& blocks, RankInGroup root, StreamRef stream = {}) {
    run(calls::blocks_of_out(Operation::gather, in, out, blocks, root, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto gather_v_async(In&& in, Out&& out, const Blocks& blocks, RankInGroup root,
                                    StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_out(Operation::gather, i, o, blocks, root, stream);
    });
  }
  /// Block k of the root's in goes to member k; in is ignored elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter_v(In&& in, const Blocks& blocks, Out&& out, RankInGroup root,
                 StreamRef stream = {}) {
    run(calls::blocks_of_in(Operation::scatter, in, out, blocks, root, ReduceOp::sum, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto scatter_v_async(In&& in, const Blocks& blocks, Out&& out, RankInGroup root,
                                     StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::blocks_of_in(Operation::scatter, i, o, blocks, root, ReduceOp::sum, stream);
    });
  }
  /// Block k of in goes to member k; block k of out comes from member k. Each member passes its own
  /// two rows of sizes: what it sends, and what it receives.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_to_all_v(In&& in, const Blocks& in_blocks, Out&& out, const Blocks& out_blocks,
                    StreamRef stream = {}) {
    run(calls::all_to_all_v(in, in_blocks, out, out_blocks, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto all_to_all_v_async(In&& in, const Blocks& in_blocks, Out&& out,
                                        const Blocks& out_blocks, StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::all_to_all_v(i, in_blocks, o, out_blocks, stream);
    });
  }

  /// To another member. Returns when the values may be changed; that may be before they are
  /// received.
  /// @param tag  0 .. 16383, the same at both ends.
  template <Memory In>
  void send(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send, In>(calls::send(values, resolved(to), tag, stream));
  }
  template <Memory In>
  [[nodiscard]] auto send_async(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<In>(values),
                     [&](auto& v) { return calls::send(v, resolved(to), tag, stream); });
  }
  /// From another member, exactly as many elements as it sends.
  template <WritableMemory Out>
  void recv(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::recv, Out>(calls::recv(values, resolved(from), tag, stream));
  }
  template <WritableMemory Out>
  [[nodiscard]] auto recv_async(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    return start_one(std::forward<Out>(values),
                     [&](auto& v) { return calls::recv(v, resolved(from), tag, stream); });
  }
  /// Both at once, which cannot deadlock against the peers' send_recv. The two sizes may differ.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void send_recv(In&& in, Peer to, Out&& out, Peer from, int tag = 0, StreamRef stream = {}) {
    run_typed<Operation::send_recv, In, Out>(
        calls::send_recv(in, resolved(to), out, resolved(from), tag, stream));
  }
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  [[nodiscard]] auto send_recv_async(In&& in, Peer to, Out&& out, Peer from, int tag = 0,
                                     StreamRef stream = {}) {
    return start_two(std::forward<In>(in), std::forward<Out>(out), [&](auto& i, auto& o) {
      return calls::send_recv(i, resolved(to), o, resolved(from), tag, stream);
    });
  }

  /// Which transport serves an operation, by which rule, and why rules before that do not. Local.
  /// Calls whose counts differ by contract (v-forms, objects) are asked for with `bytes` negative:
  /// rules by size do not match them.
  /// @param bytes  as the rules count them (docs/routes.md): of the largest buffer of a member.
  /// @param capture  of device calls: inside a CUDA graph.
  [[nodiscard]] RouteExplanation explain(Operation operation, std::int64_t bytes,
                                         MemoryKind kind = MemoryKind::host,
                                         DataType type = DataType::float32,
                                         bool capture = false) const;

  /// Any operation as a record.
  void run(const Call& call);
  /// The same without waiting.
  /// @param kept  what must live until the operation is complete.
  [[nodiscard]] Work start(const Call& call, std::shared_ptr<void> kept = {});
  /// Of the mesh. For the rooms that build on groups.
  [[nodiscard]] detail::MeshServices& services() const noexcept { return *services_; }
  /// Takes the transports that the channel has now. For the mesh, before the first operation.
  void resolve_routes();
  /// Whether this is the channel beneath. For the mesh.
  [[nodiscard]] bool uses(const detail::Channel& channel) const noexcept {
    return channel_.get() == &channel;
  }

 private:
  [[nodiscard]] RankInGroup resolved(Peer peer) const {
    return peer.resolve(rank_in_group_, size_);
  }

  // A container that is given away is kept until the operation is complete, and `also` with it;
  // what is only referred to is the caller's.
  template <class M, class Build>
  auto start_one(M&& values, Build&& build, std::shared_ptr<void> also = {}) {
    if constexpr (detail::is_borrowed<M>) {
      return start(build(values), std::move(also));
    } else {
      auto kept = std::make_shared<std::remove_cvref_t<M>>(std::forward<M>(values));
      Work work = start(build(*kept), both(kept, std::move(also)));
      return OwningWork{std::move(work), std::move(kept)};
    }
  }
  template <class In, class Out, class Build>
  auto start_two(In&& in, Out&& out, Build&& build, std::shared_ptr<void> also = {}) {
    if constexpr (detail::is_borrowed<In>) {
      return start_one(
          std::forward<Out>(out), [&](auto& o) { return build(in, o); }, std::move(also));
    } else {
      auto kept = std::make_shared<std::remove_cvref_t<In>>(std::forward<In>(in));
      return start_one(
          std::forward<Out>(out), [&](auto& o) { return build(*kept, o); },
          both(kept, std::move(also)));
    }
  }
  static std::shared_ptr<void> both(std::shared_ptr<void> one, std::shared_ptr<void> other) {
    if (other == nullptr) return one;
    using Pair = std::pair<std::shared_ptr<void>, std::shared_ptr<void>>;
    return std::make_shared<Pair>(std::move(one), std::move(other));
  }

  template <class In, class Out = In, class F>
  static auto user_reduction(F& combine, Commutative commutative) {
    using T = std::ranges::range_value_t<Out>;
    static_assert(std::same_as<std::ranges::range_value_t<In>, T>,
                  "in and out have one element type");
    return detail::UserReductionOf<T, std::decay_t<F>>{combine, commutative};
  }
  template <class In, class Out = In, class F>
  static auto kept_reduction(F& combine, Commutative commutative) {
    using T = std::ranges::range_value_t<Out>;
    static_assert(std::same_as<std::ranges::range_value_t<In>, T>,
                  "in and out have one element type");
    return std::make_shared<detail::UserReductionOf<T, std::decay_t<F>>>(combine, commutative);
  }
  template <class In, class Out, class F>
  auto start_user(Operation operation, In&& in, Out&& out, RankInGroup root, F& combine,
                  Commutative commutative) {
    auto reduction = kept_reduction<In, Out>(combine, commutative);
    return start_two(
        std::forward<In>(in), std::forward<Out>(out),
        [&](auto& i, auto& o) { return calls::user(operation, i, o, root, *reduction); },
        reduction);
  }

  // Nearly every call is on ordinary host memory. What its types say is not asked of the record.
  template <Operation operation, class... M>
  void run_typed(const Call& call) {
    if constexpr ((detail::is_ordinary<operation, M> && ...))
      run_ordinary<operation>(call);
    else
      run(call);
  }
  template <Operation operation>
  void run_ordinary(const Call& call);

  [[nodiscard]] Transport& device_transport(std::string_view what) const;
  [[gnu::noinline]] void run_checked(const Call& call);
  void run_on_device(const Call& call);
  void run_on_host(const Call& call);
  void run_rewritten(const Call& call);
  void start_on_host(const Call& call, detail::InFlight& operation);
  template <class Action>
  void on_device_checked(Action&& action);
  [[nodiscard]] Transport& transport_of(const Call& call) const;
  void run_with_deadline(const Call& call, Deadline::Duration duration);
  void run_beside_shared(const Call& call, Transport& transport);
  void check(const Call& call, bool on_device) const;
  void gather(const Call& call, std::function<void(const Call&)> issue,
              std::function<void(const std::string&)> give_up);
  [[nodiscard]] WaitPoint step_of(const Call& call);

  std::string name_;
  std::shared_ptr<detail::Channel> channel_;
  std::shared_ptr<detail::MeshServices> services_;
  std::int64_t size_;
  RankInGroup rank_in_group_;
  std::unique_ptr<detail::Router> router_;
};

}  // namespace rankmesh

// One rank's handle on one group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/bootstrap_report.hpp"
#include "rankmesh/group/peer.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/transport/call.hpp"

struct ncclComm;  // what an ncclComm_t points to

namespace rankmesh {

class Transport;

namespace detail {
struct Channel;
struct MeshServices;
}  // namespace detail

/// Routes each operation of one group to the transport that carries it.
///
/// Collectives are collective over the group: every member calls them with matching sizes, in the same order
/// per group, and all ranks' orders over all groups fit one global order. They block until the caller's part
/// is done. Buffers are contiguous ranges in host memory (std::span, std::vector, ...) or a DeviceSpan; in
/// and out have the same element type. Counts are 64-bit. `n` below is size().
///
/// In place: pass the same memory as input and output (all_gather, gather: the own block of the output;
/// scatter: the own block of the root's input), on all members alike. Any other overlap is refused.
///
/// @throws UsageError (wrong sizes, overlap, a rank outside the group, two threads at once) before anything
/// is
///         sent; ClosedError after close() or a failure; NoDeviceError for device memory where no device
///         transport is there; UnsupportedError for arithmetic on half types on the host; mpi::MpiError;
///         TimeoutError where the mesh has the option `deadline`, after which the group is broken.
/// Thread safety: one thread at a time per mesh; a second one is refused.
class RANKMESH_API GroupCoordinator {
 public:
  /// The mesh makes coordinators.
  GroupCoordinator(std::string name, std::shared_ptr<detail::Channel> channel,
                   std::shared_ptr<detail::MeshServices> services);
  GroupCoordinator(const GroupCoordinator&) = delete;
  GroupCoordinator& operator=(const GroupCoordinator&) = delete;

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
  [[nodiscard]] Rank first() const { return ranks().front(); }
  [[nodiscard]] Rank last() const { return ranks().back(); }
  [[nodiscard]] Rank next() const {
    return ranks().at(Peer{rankmesh::next}.resolve(rank_in_group_, size_).value());
  }
  [[nodiscard]] Rank prev() const {
    return ranks().at(Peer{rankmesh::prev}.resolve(rank_in_group_, size_).value());
  }
  [[nodiscard]] bool is_first() const noexcept { return rank_in_group_ == RankInGroup{0}; }
  [[nodiscard]] bool is_last() const noexcept { return rank_in_group_.value() + 1 == size_; }
  /// The group's communicator (MPI_COMM_SELF for a group of one), owned by the mesh. Collectives that the
  /// caller issues on it count in the order of issue; point-to-point tags are the caller's below 16384.
  [[nodiscard]] MPI_Comm native_mpi() const;

  /// The group's NCCL communicator (an ncclComm_t), owned by the mesh; null for a group of one. Unless the
  /// name's options say `blocking`, it is non-blocking: after a call of your own poll ncclCommGetAsyncError
  /// to success before the next call of either side. @throws NoDeviceError where there is none, or it is not
  /// open yet.
  [[nodiscard]] ncclComm* native_nccl() const;
  /// The group's own stream, with the priority that the name's options give; made when first asked for, and
  /// destroyed by close(). @throws NoDeviceError.
  [[nodiscard]] StreamRef stream() const;
  /// How the NCCL communicator came to be; null where there is none.
  [[nodiscard]] const BootstrapReport* bootstrap() const noexcept;

  /// Returns when all members have come.
  void barrier() { run({.operation = Operation::barrier}); }

  /// The root's values, everywhere.
  template <WritableMemory M>
  void broadcast(M&& values, RankInGroup root, StreamRef stream = {}) {
    run({.operation = Operation::broadcast, .out = buffer_of(values), .root = root, .stream = stream});
  }

  /// Element-wise over the members, in place.
  template <WritableMemory M>
  void all_reduce(M&& values, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    const Buffer buffer = buffer_of(values);
    run({.operation = Operation::all_reduce,
         .in = buffer.as_input(),
         .out = buffer,
         .reduction = op,
         .stream = stream});
  }
  /// Element-wise over the members; out has as many elements as in.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_reduce(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run({.operation = Operation::all_reduce,
         .in = input(in),
         .out = buffer_of(out),
         .reduction = op,
         .stream = stream});
  }
  /// The same on device memory: ordered after what the stream holds; the host does not wait for it.
  template <WritableMemory M>
    requires detail::is_device_span<std::remove_cvref_t<M>>
  void all_reduce(M&& values, StreamRef stream, ReduceOp op = ReduceOp::sum) {
    all_reduce(values, op, stream);
  }

  /// Element-wise over the members, at the root; in place there.
  template <WritableMemory M>
  void reduce(M&& values, RankInGroup root, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    const Buffer buffer = buffer_of(values);
    run({.operation = Operation::reduce,
         .in = buffer.as_input(),
         .out = buffer,
         .reduction = op,
         .root = root,
         .stream = stream});
  }
  /// Element-wise over the members; out has as many elements as in at the root and is not touched elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce(In&& in, Out&& out, RankInGroup root, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run({.operation = Operation::reduce,
         .in = input(in),
         .out = buffer_of(out),
         .reduction = op,
         .root = root,
         .stream = stream});
  }

  /// Every member's in, one after the other in group order; out has n times as many elements.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_gather(In&& in, Out&& out, StreamRef stream = {}) {
    run({.operation = Operation::all_gather, .in = input(in), .out = buffer_of(out), .stream = stream});
  }

  /// The sum (or another reduction) of everyone's in; member k gets block k. in has n times as many elements
  /// as out.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void reduce_scatter(In&& in, Out&& out, ReduceOp op = ReduceOp::sum, StreamRef stream = {}) {
    run({.operation = Operation::reduce_scatter,
         .in = input(in),
         .out = buffer_of(out),
         .reduction = op,
         .stream = stream});
  }

  /// Every member's in at the root, in group order; out has n times as many elements there, is ignored
  /// elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void gather(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run({.operation = Operation::gather,
         .in = input(in),
         .out = buffer_of(out),
         .root = root,
         .stream = stream});
  }

  /// Block k of the root's in goes to member k; in has n times as many elements as out there, is ignored
  /// elsewhere.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void scatter(In&& in, Out&& out, RankInGroup root, StreamRef stream = {}) {
    run({.operation = Operation::scatter,
         .in = input(in),
         .out = buffer_of(out),
         .root = root,
         .stream = stream});
  }

  /// Block k of in goes to member k; block k of out comes from member k. Equal sizes, divisible by n.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void all_to_all(In&& in, Out&& out, StreamRef stream = {}) {
    run({.operation = Operation::all_to_all, .in = input(in), .out = buffer_of(out), .stream = stream});
  }

  /// To another member. Returns when the values may be changed; that may be before they are received.
  /// @param tag  0 .. 16383, the same at both ends.
  template <Memory In>
  void send(In&& values, Peer to, int tag = 0, StreamRef stream = {}) {
    run({.operation = Operation::send,
         .in = input(values),
         .destination = to.resolve(rank_in_group_, size_),
         .tag = tag,
         .stream = stream});
  }
  /// From another member, exactly as many elements as it sends.
  template <WritableMemory Out>
  void recv(Out&& values, Peer from, int tag = 0, StreamRef stream = {}) {
    run({.operation = Operation::recv,
         .out = buffer_of(values),
         .source = from.resolve(rank_in_group_, size_),
         .tag = tag,
         .stream = stream});
  }
  /// Both at once, which cannot deadlock against the peers' send_recv. The two sizes may differ.
  template <Memory In, WritableMemory Out>
    requires MatchingMemory<In, Out>
  void send_recv(In&& in, Peer to, Out&& out, Peer from, int tag = 0, StreamRef stream = {}) {
    run({.operation = Operation::send_recv,
         .in = input(in),
         .out = buffer_of(out),
         .destination = to.resolve(rank_in_group_, size_),
         .source = from.resolve(rank_in_group_, size_),
         .tag = tag,
         .stream = stream});
  }

  /// Any operation as a record; what the functions above call.
  void run(const Call& call);
  /// Whether this is the channel beneath. For the mesh.
  [[nodiscard]] bool uses(const detail::Channel& channel) const noexcept {
    return channel_.get() == &channel;
  }

 private:
  template <class M>
  static ConstBuffer input(M&& memory) {
    const auto buffer = buffer_of(memory);
    return {buffer.data, buffer.count, buffer.type, buffer.kind};
  }

  [[nodiscard]] Transport& device_transport(std::string_view what) const;
  void run_on_device(const Call& call);
  void run_with_deadline(const Call& call);

  std::string name_;
  std::shared_ptr<detail::Channel> channel_;
  std::shared_ptr<detail::MeshServices> services_;
  std::int64_t size_;
  RankInGroup rank_in_group_;
};

}  // namespace rankmesh

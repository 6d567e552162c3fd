// SPDX-License-Identifier: BSD-3-Clause
// The coordinator of one group, which runs operations and answers questions about the group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/detail/call_issuer.hpp"
#include "rankmesh/group/operations/all_gather.hpp"
#include "rankmesh/group/operations/all_reduce.hpp"
#include "rankmesh/group/operations/all_to_all.hpp"
#include "rankmesh/group/operations/barrier.hpp"
#include "rankmesh/group/operations/broadcast.hpp"
#include "rankmesh/group/operations/exscan.hpp"
#include "rankmesh/group/operations/gather.hpp"
#include "rankmesh/group/operations/recv.hpp"
#include "rankmesh/group/operations/reduce.hpp"
#include "rankmesh/group/operations/reduce_scatter.hpp"
#include "rankmesh/group/operations/scan.hpp"
#include "rankmesh/group/operations/scatter.hpp"
#include "rankmesh/group/operations/send.hpp"
#include "rankmesh/group/operations/send_recv.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/bootstrap_report.hpp"

struct ncclComm;  // the type that an ncclComm_t points to

namespace rankmesh {

namespace detail {
struct GroupAccess;
}

/// Runs the operations of one group. The mesh creates the coordinators. Each operation has a header
/// in group/operations/ with its forms; "Rules of the operations" in docs/programs.md are the rules
/// for all of them. All throw:
/// @throws UsageError if the arguments are wrong, or if two threads call the mesh at the same time.
/// Nothing was sent, and the group can still be used.
/// @throws ClosedError if the mesh is closed, or if the group is broken because an earlier
/// operation failed.
/// @throws NoDeviceError if the buffers are in device memory, but the group has no device
/// transport.
/// @throws UnsupportedError if NCCL does not support the element type, the reduction or the form of
/// the operation.
/// @throws mpi::MpiError if MPI returns an error.
/// @throws TimeoutError if MeshOptions::deadline passes. The group is broken afterwards.
///
/// Thread safety: only one thread at a time may use the mesh.
class RANKMESH_API GroupCoordinator : private detail::CallIssuer,
                                      public Barrier,
                                      public Broadcast<>,
                                      public Reduce<>,
                                      public AllReduce<>,
                                      public AllGather<>,
                                      public ReduceScatter<>,
                                      public Gather<>,
                                      public Scatter<>,
                                      public AllToAll<>,
                                      public Send<>,
                                      public Recv<>,
                                      public SendRecv<>,
                                      public Scan<>,
                                      public Exscan<> {
 public:
  GroupCoordinator(const GroupCoordinator&) = delete;  // write: auto& tp = mesh["tp"];
  GroupCoordinator& operator=(const GroupCoordinator&) = delete;
  ~GroupCoordinator();

  /// Returns the name of the family. For a dynamic group, returns the name that the program gave to
  /// the group.
  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns the number of members.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Returns this rank's number in the group.
  [[nodiscard]] RankInGroup rank_in_group() const noexcept { return self_; }
  /// Returns the members' ranks in the world, in group order.
  [[nodiscard]] const RankSet& ranks() const noexcept;
  /// Returns this rank's number in the world.
  [[nodiscard]] Rank rank() const noexcept;
  /// Returns this rank's number among the ranks of the mesh on this node.
  [[nodiscard]] std::int32_t local_rank() const noexcept;
  /// Returns the first member's rank in the world.
  [[nodiscard]] Rank first_rank() const { return ranks().front(); }
  /// Returns the last member's rank in the world.
  [[nodiscard]] Rank last_rank() const { return ranks().back(); }
  /// Returns the next member's rank in the world. The last member is followed by the first.
  [[nodiscard]] Rank next_rank() const { return ranks().at(resolved(rankmesh::next).value()); }
  /// Returns the previous member's rank in the world. The first member is preceded by the last.
  [[nodiscard]] Rank prev_rank() const { return ranks().at(resolved(rankmesh::prev).value()); }
  /// Returns whether this rank is the first member.
  [[nodiscard]] bool is_first() const noexcept { return self_ == RankInGroup{0}; }
  /// Returns whether this rank is the last member.
  [[nodiscard]] bool is_last() const noexcept { return self_.value() + 1 == size_; }

  /// Returns the group's MPI communicator, which the mesh owns and close() frees. Local. For a
  /// group of one rank, returns MPI_COMM_SELF.
  ///
  /// The error handler of the communicator is MPI_ERRORS_RETURN; rankmesh relies on it, so the
  /// program must not set another one. An adopted communicator keeps the handler of the program.
  /// The program may use the communicator under these rules:
  /// - All members must issue collectives on the communicator in the same order relative to the
  ///   group's other operations.
  /// - The tags of messages must be less than 16384, and must differ from the tags of every send()
  ///   and recv() that is in flight.
  /// @throws ClosedError if the mesh or the group is closed.
  [[nodiscard]] MPI_Comm native_mpi() const;
  /// Returns the group's NCCL communicator (an ncclComm_t), which the mesh owns. For a group of one
  /// rank, returns null. The communicator is non-blocking unless the family has the option
  /// `blocking`. After each NCCL call on a non-blocking communicator, poll ncclCommGetAsyncError
  /// until the state is ncclSuccess, and only then make the next call.
  /// @throws NoDeviceError if the group has no NCCL communicator, or if the communicator is not
  /// open yet.
  /// @throws ClosedError if the mesh or the group is closed, or if the group is broken.
  [[nodiscard]] ncclComm* native_nccl() const;
  /// Returns the group's own stream. The priority of the stream is set in the options of the
  /// family. The first call creates the stream, and close() destroys it.
  /// @throws NoDeviceError if the group has no NCCL communicator; ClosedError if the mesh or the
  /// group is closed.
  [[nodiscard]] StreamRef stream() const;
  /// Blocks the host until the stream is idle, and meanwhile checks the NCCL communicator for
  /// errors. Use this function instead of cudaStreamSynchronize, which succeeds even if NCCL has
  /// failed asynchronously.
  /// @throws nccl::NcclError if NCCL reports an error. The group is broken afterwards.
  /// @throws TimeoutError if the timeout of the group passes. The group is broken afterwards, and
  /// its communicator is aborted; if the stream waits for another group, all communicators are
  /// aborted.
  /// @throws UsageError if the stream is being captured, or is a default stream while another
  /// device is current.
  /// @throws NoDeviceError if the group has no NCCL communicator.
  void wait(StreamRef stream);
  /// Returns a report about the creation of the NCCL communicator, or null if the group has no NCCL
  /// communicator.
  [[nodiscard]] const BootstrapReport* bootstrap() const noexcept;

  /// Returns the transport that the routes choose for an operation, the rule that chooses this
  /// transport, and the reasons why earlier rules do not apply. Local.
  /// @param bytes    The size of the largest buffer of a member, in bytes (docs/routes.md). Pass a
  ///                 negative number for operations whose counts differ between members (v-forms,
  ///                 objects). Rules with a range of sizes do not apply to v-forms and objects.
  /// @param kind     The kind of memory.
  /// @param type     The type of the elements.
  /// @param capture  Whether a CUDA graph is being captured. This matters only for device memory.
  [[nodiscard]] RouteExplanation explain(Operation operation, std::int64_t bytes,
                                         MemoryKind kind = MemoryKind::host,
                                         DataType type = DataType::float32,
                                         bool capture = false) const;

  /// Refuses every call, at compile time.
  template <class... A>
  RANKMESH_REFUSE(
      "a group has no run(): call an operation, such as all_reduce(values); the moves of a "
      "pipeline are run by StageExchange{group}.run({...})")
  void run(A&&...) {}

 private:
  friend struct detail::GroupAccess;
  template <Operation>
  friend class detail::OperationForms;
  explicit GroupCoordinator(std::unique_ptr<detail::CallDispatcher> dispatcher);
};

namespace detail {
template <Operation operation>
CallIssuer& OperationForms<operation>::issuer() {
  return static_cast<GroupCoordinator&>(*this);
}
template <Operation operation>
template <class Forms>
Forms& OperationForms<operation>::other() {
  return static_cast<GroupCoordinator&>(*this);
}
}  // namespace detail

}  // namespace rankmesh

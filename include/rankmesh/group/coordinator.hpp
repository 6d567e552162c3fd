// SPDX-License-Identifier: BSD-3-Clause
// The coordinator of one group, which runs operations and answers questions about the group.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/near_misses.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/bootstrap_report.hpp"

struct ncclComm;  // the type that an ncclComm_t points to

namespace rankmesh {

namespace detail {
struct GroupAccess;
}

/// Runs the operations of one group. The routes choose the transport that carries out each
/// operation. The mesh creates the coordinators. The operations are declared in the base classes:
/// Collectives, AxisCollectives, BlockCollectives, SliceCollectives, UserReductions, PointToPoint,
/// StreamForms, ValueOperations and ReturnedResults.
///
/// Order: all members of the group must call the same collectives in the same order, with matching
/// sizes. Ranks that have several groups in common must call the operations of these groups in the
/// same global order.
///
/// Arguments have the same order in all operations: in, out, blocks or axis, the root or the other
/// member, the reduction or the tag, and the stream of device memory. The reduction and the tag can
/// be left out, even if a stream follows.
///
/// Buffers are contiguous ranges in host memory (std::span, std::vector, ...) or a DeviceSpan. `in`
/// and `out` have the same element type. Counts are in elements and have 64 bits. Operations that
/// only move values accept elements of any trivially copyable type; see MovableElement. A ReduceOp
/// combines numbers, complex numbers and arrays of them; see ReducibleElement. Values that are not
/// numbers are moved as bytes; messages and records then show the number of bytes.
///
/// Host memory: a call blocks until this member's part is complete. Then `out` holds the result,
/// and the program may change `in`.
///
/// Device memory: a call returns once the operation is queued. The operation runs after the work
/// that is already on the caller's stream. Work that is added to this stream later runs after the
/// operation.
///
/// The `_async` forms do not block; they return a Work. The buffers must stay valid until the
/// operation is complete. If the program moves a container into the call, the call returns an
/// OwningWork, which keeps the container until the program calls take(). Operations are issued in
/// the order of the calls.
///
/// An operation is in place if the input and the output are the same memory. If an operation is in
/// place on one member, it must be in place on all members. In an in-place all_gather or gather,
/// `in` is this rank's block of `out`. In an in-place scatter, the root's `out` is the root's block
/// of `in`. In an in-place reduce_scatter, which is possible only on devices, `out` is this rank's
/// block of `in`. NCCL does not support all_to_all in place. If buffers overlap in any other way,
/// the call throws UsageError.
///
/// Reductions of 16-bit and 8-bit floats in host memory are computed in float32, and the result is
/// rounded once. These reductions need 4 bytes of scratch memory per element of `in` and `out`.
/// They transfer float32 values, so they transfer more bytes than the buffers hold.
///
/// All operations throw:
/// @throws UsageError if the sizes are wrong, if the buffers overlap, if a rank is outside the
/// group, or if two threads call the mesh at the same time. Nothing was sent, and the group can
/// still be used.
/// @throws ClosedError if the mesh is closed, or if the group is broken because an earlier
/// operation failed.
/// @throws NoDeviceError if the buffers are in device memory, but the group has no device
/// transport.
/// @throws UnsupportedError if NCCL does not support the element type, the reduction or the form of
/// the operation.
/// @throws mpi::MpiError if MPI returns an error.
/// @throws TimeoutError if MeshOptions::deadline passes. The group is broken afterwards.
///
/// Thread safety: only one thread at a time may use the mesh; a call from a second thread throws
/// UsageError.
class RANKMESH_API GroupCoordinator : public NearMisses {
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
  /// @throws TimeoutError if the mesh's timeout passes.
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

 private:
  friend struct detail::GroupAccess;
  explicit GroupCoordinator(std::unique_ptr<detail::CallDispatcher> dispatcher);
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// The coordinator of one group: its operations and its facts.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/point_to_point.hpp"
#include "rankmesh/layout/rank_set.hpp"
#include "rankmesh/mpi/native.hpp"
#include "rankmesh/routes/route_table.hpp"
#include "rankmesh/transport/bootstrap_report.hpp"

struct ncclComm;  // the type that an ncclComm_t points to

namespace rankmesh {

namespace detail {
struct GroupAccess;
}

/// Runs the operations of one group. Each operation runs on the transport that the routes choose. A
/// mesh creates its coordinators. The operations are declared in the base classes: Collectives,
/// AxisCollectives, BlockCollectives, UserReductions and PointToPoint.
///
/// Order: all members of the group must call the collectives, with matching sizes and in the same
/// order. If ranks have several groups in common, all these ranks must call the operations of these
/// groups in an order that fits one global order.
///
/// Buffers are contiguous ranges in host memory (std::span, std::vector, ...) or a DeviceSpan. `in`
/// and `out` have the same element type. Counts are 64-bit numbers of elements.
///
/// Host memory: a call blocks until this member's part is complete: `out` is written, and `in` may
/// be changed. Device memory: a call returns once the operation is queued. The operation runs after
/// the work that the caller's stream already holds, and later work of this stream runs after the
/// operation.
///
/// The `_async` forms return a Work without blocking. Their buffers must stay valid until the
/// operation is complete. If a container is moved into the call, the Work keeps the container, and
/// OwningWork::take() returns it. Operations are issued in the order of the calls.
///
/// In place: the input and the output may be the same memory if all members do this. For
/// all_gather and gather, `in` is this rank's block of `out`; for scatter, `out` is the root's
/// block of its `in`; for reduce_scatter on devices, `out` is this rank's block of `in`. NCCL does
/// not support all_to_all in place. Any other overlap throws UsageError.
///
/// Reductions of 16-bit and 8-bit floats on the host are computed in float32 and rounded once. They
/// need 4 bytes of scratch memory per element of `in` and `out`, and they transfer float32 values.
///
/// All operations throw:
/// @throws UsageError        The sizes are wrong, the buffers overlap, a rank is outside the group,
///                           or two threads call at once. Nothing was sent, and the group is still
///                           usable.
/// @throws ClosedError       The mesh is closed, or an earlier operation broke the group.
/// @throws NoDeviceError     The buffers are on a device, but there is no device transport.
/// @throws UnsupportedError  NCCL does not have the arithmetic or the form of the operation.
/// @throws mpi::MpiError     MPI returned an error.
/// @throws TimeoutError      MeshOptions::deadline has passed. The group is broken afterwards.
///
/// Thread safety: only one thread at a time may use the mesh; a call from a second thread throws
/// UsageError.
class RANKMESH_API GroupCoordinator : public PointToPoint {
 public:
  GroupCoordinator(const GroupCoordinator&) = delete;
  GroupCoordinator& operator=(const GroupCoordinator&) = delete;
  ~GroupCoordinator();

  /// Returns the name of the family, or the name that was given to a dynamic group.
  [[nodiscard]] const std::string& name() const noexcept;
  /// Returns the number of members.
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  /// Returns this rank's number in the group.
  [[nodiscard]] RankInGroup rank_in_group() const noexcept { return self_; }
  /// Returns the members' ranks in the world, in group order.
  [[nodiscard]] const RankSet& ranks() const noexcept;
  /// Returns this rank's number in the world.
  [[nodiscard]] Rank rank() const noexcept;
  /// Returns this rank's number among the ranks of the mesh on its node.
  [[nodiscard]] std::int32_t local_rank() const noexcept;
  /// Returns the first member's rank in the world.
  [[nodiscard]] Rank first_rank() const { return ranks().front(); }
  /// Returns the last member's rank in the world.
  [[nodiscard]] Rank last_rank() const { return ranks().back(); }
  /// Returns the next member's rank in the world; for the last member, this is the first member's
  /// rank.
  [[nodiscard]] Rank next_rank() const { return ranks().at(resolved(rankmesh::next).value()); }
  /// Returns the previous member's rank in the world; for the first member, this is the last
  /// member's rank.
  [[nodiscard]] Rank prev_rank() const { return ranks().at(resolved(rankmesh::prev).value()); }
  /// Returns whether this rank is the first member.
  [[nodiscard]] bool is_first() const noexcept { return self_ == RankInGroup{0}; }
  /// Returns whether this rank is the last member.
  [[nodiscard]] bool is_last() const noexcept { return self_.value() + 1 == size_; }

  /// Returns the group's communicator, which the mesh owns (MPI_COMM_SELF for a group of one rank).
  /// If the program issues collectives on this communicator, all members must issue them in the
  /// same order among the group's other operations. Messages on this communicator must have tags
  /// below 16384. These tags must differ from the tags of every send() and recv() in flight.
  /// @throws ClosedError
  [[nodiscard]] MPI_Comm native_mpi() const;
  /// Returns the group's NCCL communicator (an ncclComm_t), which the mesh owns. The result is null
  /// for a group of one rank. The communicator is non-blocking unless the family has the option
  /// `blocking`. After each NCCL call that the program makes on it, poll ncclCommGetAsyncError
  /// until it returns ncclSuccess, and only then make the next call.
  /// @throws NoDeviceError  The group has no NCCL communicator, or the communicator is not open
  ///                        yet.
  /// @throws ClosedError
  [[nodiscard]] ncclComm* native_nccl() const;
  /// Returns the group's own stream, which has the priority that the family's options give. The
  /// first call creates it, and close() destroys it.
  /// @throws NoDeviceError, ClosedError
  [[nodiscard]] StreamRef stream() const;
  /// Blocks the host until the stream is idle, and checks the NCCL communicator meanwhile. Use it
  /// instead of cudaStreamSynchronize, which succeeds even if NCCL has failed asynchronously.
  /// @throws nccl::NcclError  The group is broken afterwards.
  /// @throws TimeoutError     The mesh's timeout has passed.
  /// @throws NoDeviceError
  void wait(StreamRef stream);
  /// Returns a report of how the NCCL communicator was created, or null if the group has no NCCL
  /// communicator.
  [[nodiscard]] const BootstrapReport* bootstrap() const noexcept;

  /// Returns the transport that serves an operation, the rule that chose it, and the reasons why
  /// earlier rules do not apply. Local.
  /// @param bytes    The size of the largest buffer of a member, in bytes (docs/routes.md).
  ///                 Negative for operations whose counts differ between members (v-forms,
  ///                 objects); rules with a size do not apply to these.
  /// @param kind     The kind of memory.
  /// @param type     The type of the elements.
  /// @param capture  Whether a CUDA graph is being captured. It matters for device memory only.
  [[nodiscard]] RouteExplanation explain(Operation operation, std::int64_t bytes,
                                         MemoryKind kind = MemoryKind::host,
                                         DataType type = DataType::float32,
                                         bool capture = false) const;

 private:
  friend struct detail::GroupAccess;
  explicit GroupCoordinator(std::unique_ptr<detail::CallDispatcher> dispatcher);
};

}  // namespace rankmesh

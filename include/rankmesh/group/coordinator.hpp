// One rank's handle on one group.
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

struct ncclComm;  // what an ncclComm_t points to

namespace rankmesh {

namespace detail {
struct GroupAccess;
}

/// Routes each operation of one group to the transport that carries it. A mesh makes its
/// coordinators. The operations are in the headers of the base classes: Collectives,
/// AxisCollectives, BlockCollectives, UserReductions and PointToPoint.
///
/// Collectives are collective over the group: every member calls them with matching sizes, in the
/// same order per group, and the orders of all ranks over all groups fit one global order. They
/// block until the caller's part is done. Buffers are contiguous ranges in host memory (std::span,
/// std::vector,
/// ...) or a DeviceSpan; `in` and `out` have the same element type. Counts are 64-bit.
///
/// The `_async` forms return a Work at once. They take the same buffers, which must outlive the
/// operation; a container that is moved in is kept by the Work and returned by take(). Operations
/// are issued in the order of the calls, whatever completes first.
///
/// In place: pass the same memory as input and output (all_gather, gather: the own block of the
/// output; scatter: the own block of the root's input; on devices reduce_scatter: the own block of
/// the input), on all members alike. NCCL has no all_to_all in place. Any other overlap is refused.
///
/// Reductions of 16- and 8-bit floats on the host are computed in float32 and rounded once. They
/// take 4 bytes of scratch memory per element of `in` and `out`, and float32 travels.
///
/// @throws UsageError (wrong sizes, overlap, a rank outside the group, two threads at once) before
///         anything is sent; ClosedError after close() or a failure; NoDeviceError for device
///         memory where there is no device transport; UnsupportedError for arithmetic that NCCL
///         does not have; mpi::MpiError; TimeoutError where the mesh has the option `deadline`,
///         after which the group is broken.
/// Thread safety: one thread at a time per mesh; a second one is refused.
class RANKMESH_API GroupCoordinator : public PointToPoint {
 public:
  GroupCoordinator(const GroupCoordinator&) = delete;
  GroupCoordinator& operator=(const GroupCoordinator&) = delete;
  ~GroupCoordinator();

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] RankInGroup rank_in_group() const noexcept { return self_; }
  /// Returns the members' ranks in the world, in group order.
  [[nodiscard]] const RankSet& ranks() const noexcept;
  /// Returns this rank's number in the world.
  [[nodiscard]] Rank rank() const noexcept;
  /// Returns this rank's number among the mesh's ranks on its node.
  [[nodiscard]] std::int32_t local_rank() const noexcept;
  /// Return the ranks in the world of the first and the last member and of the neighbours in the
  /// ring of members.
  [[nodiscard]] Rank first_rank() const { return ranks().front(); }
  [[nodiscard]] Rank last_rank() const { return ranks().back(); }
  [[nodiscard]] Rank next_rank() const { return ranks().at(resolved(rankmesh::next).value()); }
  [[nodiscard]] Rank prev_rank() const { return ranks().at(resolved(rankmesh::prev).value()); }
  [[nodiscard]] bool is_first() const noexcept { return self_ == RankInGroup{0}; }
  [[nodiscard]] bool is_last() const noexcept { return self_.value() + 1 == size_; }

  /// Returns the group's communicator (MPI_COMM_SELF for a group of one), which the mesh owns.
  /// Collectives that the caller issues on it count in the order of issue. Point-to-point tags
  /// below 16384 are the caller's. @throws ClosedError.
  [[nodiscard]] MPI_Comm native_mpi() const;
  /// Returns the group's NCCL communicator (an ncclComm_t), which the mesh owns; null for a group
  /// of one. Unless the family's options say `blocking`, it is non-blocking: after a call of your
  /// own, poll ncclCommGetAsyncError until it reports success before either side makes the next
  /// call.
  /// @throws NoDeviceError where there is none or it is not open yet; ClosedError.
  [[nodiscard]] ncclComm* native_nccl() const;
  /// Returns the group's own stream, with the priority of the family's options. It is created when
  /// it is first asked for, and close() destroys it. @throws NoDeviceError, ClosedError.
  [[nodiscard]] StreamRef stream() const;
  /// Waits on the host until the stream has run everything that it holds, and watches the
  /// communicator meanwhile. A wait for the stream alone would return as if all were well after
  /// NCCL failed asynchronously.
  /// @throws nccl::NcclError, after which the group is broken; TimeoutError after the mesh's
  /// timeout;
  ///         NoDeviceError.
  void wait(StreamRef stream);
  /// Returns how the NCCL communicator was made; null where there is none.
  [[nodiscard]] const BootstrapReport* bootstrap() const noexcept;

  /// Says which transport serves an operation, by which rule, and why earlier rules do not apply.
  /// Local.
  /// @param bytes  Of the largest buffer of a member, as rules count them (docs/routes.md).
  /// Negative for
  ///               calls whose counts differ between members (v-forms, objects): rules by size do
  ///               not match these.
  /// @param capture  For device calls: whether the call is inside the capture of a CUDA graph.
  [[nodiscard]] RouteExplanation explain(Operation operation, std::int64_t bytes,
                                         MemoryKind kind = MemoryKind::host,
                                         DataType type = DataType::float32,
                                         bool capture = false) const;

 private:
  friend struct detail::GroupAccess;
  explicit GroupCoordinator(std::unique_ptr<detail::CallDispatcher> dispatcher);
};

}  // namespace rankmesh

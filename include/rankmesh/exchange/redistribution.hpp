// SPDX-License-Identifier: BSD-3-Clause
// Moves tensors from one place to another, as a TransferPlan says.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange {

namespace detail {
struct RedistributionState;
}

/// This rank's part of a tensor before a transfer. A rank that has no elements of the tensor passes
/// a default-constructed TensorSource.
struct TensorSource {
  TensorSource() = default;
  /// Creates a source from memory, which must stay valid until the transfer is complete.
  /// @param memory_strides  The distance of neighbouring elements along each axis, in elements. If
  ///                        it is empty, the elements form a dense row-major array.
  template <Memory M>
    requires(!std::same_as<std::remove_cvref_t<M>, TensorSource>)
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint keeps the copies
  TensorSource(M&& elements, std::vector<std::int64_t> memory_strides = {})  // implicit
      : strides{std::move(memory_strides)} {
    const auto buffer = buffer_of(elements);
    memory = {buffer.data, buffer.count, buffer.type, buffer.kind, buffer.window};
  }
  ConstBuffer memory{};                 ///< The memory.
  std::vector<std::int64_t> strides{};  ///< One stride per axis, or none.
};

/// This rank's part of a tensor after a transfer. A rank that needs no elements of the tensor
/// passes a default-constructed TensorTarget.
struct TensorTarget {
  TensorTarget() = default;
  /// Creates a target from memory, which must stay valid until the transfer is complete.
  /// @param memory_strides  See TensorSource.
  template <WritableMemory M>
    requires(!std::same_as<std::remove_cvref_t<M>, TensorTarget>)
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint keeps the copies
  TensorTarget(M&& elements, std::vector<std::int64_t> memory_strides = {})  // implicit
      : memory{buffer_of(elements)}, strides{std::move(memory_strides)} {}
  Buffer memory{};                      ///< The memory.
  std::vector<std::int64_t> strides{};  ///< One stride per axis, or none.
};

/// The options of a Redistribution.
struct RedistributionOptions {
  /// The kind of the memory of all sources and targets. It must be the same on all members.
  MemoryKind kind = MemoryKind::host;
  /// The most memory that a rank uses for messages on the way, in bytes. It must be the same on all
  /// members. If the messages of a rank are larger together, they move in several rounds.
  std::int64_t memory = std::int64_t{64} << 20;
  /// Is called after each message of this rank: with the bytes that this rank has sent, received,
  /// read and copied so far, and with their final number. Called inside test(), wait() and other
  /// calls of the mesh, so it must not call the mesh, and it must not throw. It may be empty. It is
  /// not called for device memory, whose messages end while the host does something else.
  std::function<void(std::int64_t done, std::int64_t all)> progress{};
};

/// Carries out a TransferPlan as often as the program likes: for example, it moves the weights of
/// a training mesh to a serving mesh after each step.
///
/// ```
/// const auto from = TensorPlacement::parse("[4096,1024] f32 @ tp=8 : (tp, _)");
/// const auto to = TensorPlacement::parse("[4096,1024] bf16 @ dp=2,tp=4 : (_, tp)");
/// Redistribution move{mesh["world"], plan_transfer(from, to)};
/// for (step ...) { ...; move.start(weights, served).wait(); }
/// ```
///
/// The ranks of the plan are the members of the group, in group order, so meshes that overlap, are
/// disjoint or have different sizes are described by placements on the ranks of one group. All
/// tensors of the plan move together: what a rank sends to another one for all tensors is packed
/// into common messages. Messages whose elements are contiguous in memory are not copied.
///
/// Ranks of a node that can read each other's memory send no elements: the receiver copies them
/// from the source of the sender to their places. If the runs in the source are shorter than 2 KiB
/// on average, the sender packs them first. This holds for pairs of ranks that exchange 8 KiB or
/// more, for plans without partial sums, and if `memory` is at least 16 KiB per rank of the group.
/// RANKMESH_SINGLE_COPY=off prevents it.
///
/// Order: the messages have tags of their own, so other operations of the group may run at the same
/// time, and several redistributions may be in flight. Members need not start them in the same
/// order.
///
/// Device memory: with `kind = MemoryKind::device`, NCCL carries the messages on the group's own
/// stream, in rounds of at most 256 sends and receives per rank. The two ranks of a message have it
/// in the same round. Elements are sent and received in place if they are contiguous and belong to
/// a tensor of which the two ranks exchange 64 KiB or more, and if they are not in symmetric
/// memory. Memory that the program has registered with the NCCL communicator itself must not be
/// passed. Other elements are copied on the device: runs of at most 16 KiB by a kernel, 64
/// sequences of runs at equal distances in one launch; longer runs, and all runs in builds without
/// nvcc, by one copy in two dimensions for each sequence. Types are not converted, and partial sums
/// are refused. start() queues everything, so the host does not wait, unless NCCL connects two
/// ranks that have not exchanged messages before. Several transfers of one object may be in flight.
/// All members must issue the operations of the group on device memory in the same order, and
/// transfers are among these operations.
///
/// Types: floats are converted if the types of the places differ. A message has the smaller one of
/// both types. The conversion rounds to the nearest value, ties to even; a float64 that becomes a
/// 16-bit or 8-bit float is rounded to float32 first. Partial sums move in the type of the source,
/// and are added up in the wider type, at least float32; the sum is rounded once. Elements are
/// added in an order that depends on the plan only, so a repeated transfer gives the same bits.
///
/// Cost: one message per pair of ranks, or one per MiB or `memory` / 8 bytes; or two of 48 bytes
/// for a pair that reads directly, or for each packed piece. Memory: `memory` bytes at most, and
/// 128 KiB for direct reads, 16 bytes per tensor, 8 bytes per tensor and rank that exchanges
/// elements of it with this one, lists for each different pair of places, 56 bytes and the strides
/// per source and target if strides are passed, and four or eight bytes per element of this rank's
/// target if partial sums are converted. All is allocated by the first start() at the latest, or by
/// the first one with strides; later transfers allocate only a few objects per message. Device
/// memory for messages is freed after the last transfer that uses it, and the host does not wait
/// for that. Move-only. Thread safety: the rules of the group apply.
class RANKMESH_API Redistribution {
 public:
  /// Creates a redistribution. Collective over the group; blocks. Cost: one all_reduce of 40 bytes,
  /// which compares the plans of the members.
  /// @param group  A group that must outlive this object.
  /// @param plan  Its ranks are members of the group.
  /// @throws UsageError if the plan has more ranks than the group, if a type cannot be converted,
  /// or if `memory` is less than 1,024.
  /// @throws NoDeviceError if `kind` is device memory, but the group has no NCCL communicator.
  /// @throws UnsupportedError if `kind` is device memory, and the types of a tensor differ or it
  /// has partial sums.
  /// @throws MismatchError on all members if they pass different plans or options; the error names
  /// the members that differ. If the arguments are invalid on some members only, the other members
  /// throw it too.
  Redistribution(GroupCoordinator& group, TransferPlan plan, RedistributionOptions options = {});
  ~Redistribution();
  /// Takes over the redistribution. The source can then only be destroyed or assigned to.
  Redistribution(Redistribution&&) noexcept;
  /// Takes over the redistribution. The source can then only be destroyed or assigned to.
  Redistribution& operator=(Redistribution&&) noexcept;

  /// Starts a transfer. Collective over the ranks that send or receive elements; does not block.
  /// This rank's own elements are copied at once. In device memory, everything is queued on a
  /// stream instead; see Work. The memory must stay valid until the transfer is complete. If the
  /// transfer fails, the source is unchanged, and the target may hold any values. Other ranks may
  /// then still read the source: what they read of it later makes their transfers fail.
  /// @param source  This rank's part of each tensor, in the order of the plan.
  /// @param target  This rank's part of each tensor. It must not overlap the sources.
  /// @param stream  For device memory: the transfer runs after the work that the stream holds now.
  /// @throws UsageError if the number, the size, the strides or the type of the memory is wrong, if
  /// source and target of a tensor overlap, if an earlier transfer of this object in host memory is
  /// in flight, if the stream is being captured, or if `kind` is device memory and the memory is on
  /// the host. Nothing was sent.
  /// @throws UnsupportedError if the memory is on a device and `kind` is host memory. Nothing was
  /// sent.
  /// @throws ClosedError if the mesh is closed or the group is broken.
  /// @throws CudaError if the device has no memory for messages. Nothing was sent, and start() may
  /// be called again; the other members wait meanwhile.
  /// @throws NcclError if NCCL fails, or TimeoutError if NCCL connects two ranks and one of them
  /// does not come. The group is broken afterwards.
  [[nodiscard]] Work start(std::span<const TensorSource> source,
                           std::span<const TensorTarget> target, StreamRef stream = {});
  /// Does the same for a plan of a single tensor.
  [[nodiscard]] Work start(const TensorSource& source, const TensorTarget& target,
                           StreamRef stream = {}) {
    return start(std::span{&source, 1}, std::span{&target, 1}, stream);
  }

  /// Returns the plan.
  [[nodiscard]] const TransferPlan& plan() const;
  /// Returns the bytes that this rank sends, receives, reads and copies in each transfer.
  [[nodiscard]] std::int64_t bytes() const;
  /// Returns how many of these bytes this rank reads from the memory of other ranks of its node.
  [[nodiscard]] std::int64_t bytes_read_directly() const;

 private:
  std::shared_ptr<detail::RedistributionState> state_;
};

}  // namespace rankmesh::exchange

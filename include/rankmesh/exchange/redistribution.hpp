// SPDX-License-Identifier: BSD-3-Clause
// Moves tensors from one place to another, as a TransferPlan says.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/stream_ref.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/calls.hpp"
#include "rankmesh/group/work.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::exchange {

namespace detail {
struct RedistributionState;
}

/// This rank's part of a tensor before a transfer (TensorSource) or after it (TensorTarget). A rank
/// that has or needs no elements of the tensor passes a default-constructed one. `Byte` is as in
/// BasicBuffer.
template <class Byte>
struct TensorMemory {
  TensorMemory() = default;
  /// Describes memory, which must stay valid until the transfer is complete. An array whose type
  /// says its axes (MemoryOf) may have gaps and any order of the axes.
  template <Memory M>
    requires(!std::same_as<std::remove_cvref_t<M>, TensorMemory> &&
             (std::is_const_v<Byte> || WritableMemory<M>))
  // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint keeps the copies
  TensorMemory(M&& elements)  // implicit
  {
    require_variable<M>();
    set_memory(rankmesh::detail::buffer_of_first(elements, rankmesh::detail::reach_of(elements)));
    if constexpr (rankmesh::detail::HasShape<M>) {
      static_assert(rankmesh::detail::units_of<M> == 1,
                    "an element of a tensor is one number: pass arrays of numbers");
      set_shape(rankmesh::detail::DescriptionOf<M>::shape(elements));
    }
  }
  /// Describes memory whose type does not say where its elements are.
  /// @param memory_strides  The distance of neighbouring elements along each axis, in elements. If
  ///                        it is empty, the elements form a dense row-major array.
  template <Memory M>
    requires(std::is_const_v<Byte> || WritableMemory<M>)
  TensorMemory(M&& elements, std::vector<std::int64_t> memory_strides)  // implicit
      : strides{std::move(memory_strides)} {
    require_variable<M>();
    set_memory(buffer_of(elements));
  }
  BasicBuffer<Byte> memory{};           ///< The memory, from the first element to the last one.
  std::vector<std::int64_t> strides{};  ///< One stride per axis, or none.
  std::vector<std::int64_t> lengths{};  ///< The axes, if the type of the memory says them.

 private:
  template <class M>
  static consteval void require_variable() {
    static_assert(rankmesh::detail::is_borrowed<M>,
                  "the elements are not copied, and a temporary container is destroyed too early: "
                  "pass a variable");
  }
  template <class Given>
  void set_memory(const BasicBuffer<Given>& buffer) {
    memory = {buffer.data, buffer.count, buffer.type, buffer.kind, buffer.window};
  }
  void set_shape(const ArrayShape& shape) {
    if (shape.axes() < 2 && shape.is_row_major()) return;
    lengths.assign(shape.lengths().begin(), shape.lengths().end());
    if (!shape.is_row_major()) strides.assign(shape.strides().begin(), shape.strides().end());
  }
};
using TensorSource = TensorMemory<const std::byte>;
using TensorTarget = TensorMemory<std::byte>;

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
/// a training mesh to a serving mesh after each step. docs/redistribution.md describes how elements
/// move in host memory and in device memory, their types and sums, and the memory that this takes.
///
/// ```
/// const auto from = TensorPlacement::parse("[4096,1024] f32 @ tp=8 : (tp, _)");
/// const auto to = TensorPlacement::parse("[4096,1024] bf16 @ dp=2,tp=4 : (_, tp)");
/// Redistribution move{mesh["world"], plan_transfer(from, to)};
/// for (step ...) { ...; move.start(weights, served).wait(); }
/// ```
///
/// The ranks of the plan are the members of the group, in group order. All tensors of the plan move
/// together. The messages have tags of their own, so other operations of the group and other
/// redistributions may run at the same time, and members need not start them in the same order. In
/// device memory, transfers belong to the operations of the group, which all members issue in the
/// same order. Move-only. Thread safety: the rules of the group apply.
class RANKMESH_API Redistribution {
 public:
  /// Creates a redistribution. Collective over the group; blocks. Cost: one all_reduce of 48 bytes,
  /// which compares the plans of the members.
  /// @param group  A group that must outlive this object. Afterwards, start() throws ClosedError.
  /// @param plan  Its ranks are members of the group.
  /// @throws UsageError if the plan has more ranks than the group, if a type cannot be converted,
  /// if `memory` is less than 1,024, or if a member has 1,024 redistributions of the mesh.
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
  /// The memory must stay valid until the transfer is complete. If the transfer fails, the source
  /// is unchanged, and the target may hold any values.
  /// @param source  This rank's part of each tensor, in the order of the plan.
  /// @param target  This rank's part of each tensor. It must not overlap the sources.
  /// @param stream  For device memory: the transfer runs after the work that the stream holds now.
  /// @throws UsageError if the memory does not fit the plan or the options, if source and target of
  /// a tensor overlap, if a transfer of this object in host memory is in flight, or if the stream
  /// is being captured. UnsupportedError if the memory is on a device and `kind` is host memory.
  /// Nothing was sent.
  /// @throws ClosedError if the mesh is closed or the group is broken.
  /// @throws CudaError if the device has no memory for messages; start() may be called again.
  /// @throws NcclError if NCCL fails, or TimeoutError if a rank does not come when NCCL connects
  /// two ranks. The group is broken afterwards.
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

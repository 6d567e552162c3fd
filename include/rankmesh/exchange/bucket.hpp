// SPDX-License-Identifier: BSD-3-Clause
// Reduces many small buffers in a few collectives.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/hash.hpp"
#include "rankmesh/base/memory.hpp"
#include "rankmesh/base/reduce_op.hpp"
#include "rankmesh/exchange/tensor_dict.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/group_life.hpp"
#include "rankmesh/group/detail/no_group.hpp"

namespace rankmesh::exchange {

/// The options of a Bucket.
struct BucketOptions {
  /// The size of a full collective, in bytes. The default is 25 MiB, as in torch's DDP.
  std::int64_t bytes = std::int64_t{25} << 20;
  ReduceOp op = ReduceOp::avg;  ///< The reduction of all buffers.
  StreamRef stream{};           ///< The stream on which the program uses device buffers.
};

/// Collects buffers, such as gradients, and reduces them over a group in collectives of about equal
/// size, which run while the program continues (docs/exchange.md):
///
///     Bucket bucket{mesh["dp"]};
///     for (layer : backwards(layers)) { layer.backward(); bucket.add(layer.gradient); }
///     bucket.wait();    // all gradients are averages now
///
/// All members must add buffers of the same counts, types and kinds of memory in the same order, in
/// each round the same. A collective is issued by the call of add() that fills it, or when the
/// type, the kind of memory or the form of add() changes. A round ends with wait().
///
/// Cost: one asynchronous all_reduce or reduce_scatter per `bytes` bytes, and in the first round a
/// blocking all_reduce of 32 bytes before it. Buffers are copied into the memory of the collective
/// and back, unless a collective has a single buffer that can be divided evenly. The memory is
/// reused in the next round. Thread safety: the rules of the group apply.
class RANKMESH_API Bucket {
 public:
  /// Creates a bucket. Local.
  /// @param group  A group that must outlive the bucket. Afterwards, all functions throw
  /// ClosedError.
  /// @throws UsageError if `bytes` is less than 1.
  explicit Bucket(GroupCoordinator& group, BucketOptions options = {});
  /// @cond  This overload only refuses calls.
  template <class NoGroup>
    requires(!std::derived_from<NoGroup, GroupCoordinator> && !std::same_as<NoGroup, Bucket>)
  explicit Bucket(NoGroup&, BucketOptions options = {})
      : Bucket{rankmesh::detail::no_group(), options} {
    static_assert(rankmesh::detail::never<NoGroup>,
                  "a Bucket needs a group: write Bucket{mesh[\"dp\"]}, or Bucket{*group}");
  }
  /// @endcond
  /// Abandons the buffers that were added since the last wait(). These buffers may not hold the
  /// results, so the destructor logs a warning if there are any. Local.
  ~Bucket();
  /// Takes over the contents of another bucket, which cannot be used afterwards.
  Bucket(Bucket&&) noexcept;

  /// Adds a buffer. After wait(), the buffer holds the result. Until then, the memory must stay
  /// valid, and the program must not use it. A call may issue up to two collectives, so add() is
  /// collective over the group.
  /// @throws MismatchError on all members if the members add different buffers in the first round;
  /// the error lists them.
  /// @throws UsageError if a later round differs from the first round; MismatchError if a later
  /// round has the memory of the first round in another order, and other members do not. Buffers
  /// are known by their addresses, so do not free and allocate them between rounds: each may get
  /// the address that another one had.
  template <WritableMemory M>
  void add(M&& values) {
    static_assert(rankmesh::detail::is_borrowed<M>,
                  "a temporary container ends before its result is there");
    const Buffer buffer = buffer_of(values);
    add_part({buffer.as_input(), buffer, false});
  }
  /// Adds a buffer that is reduced with reduce_scatter. After wait(), `mine` holds this member's
  /// part of the result, and `values` is unchanged. Otherwise like the function above.
  /// @param mine  As many elements as Slice{values.size(), group} has.
  /// @throws UsageError if `mine` has a different number of elements.
  template <Memory In, WritableMemory Out>
    requires MatchingReducible<In, Out>
  void add(In&& values, Out&& mine) {
    static_assert(rankmesh::detail::is_borrowed<In> && rankmesh::detail::is_borrowed<Out>,
                  "a temporary container ends before its result is there");
    static_assert(rankmesh::detail::units_of<In> == 1,
                  "elements of several numbers would be divided: pass the numbers, or all_reduce");
    const auto in = buffer_of(values);
    add_divided({in.data, in.count, in.type, in.kind, in.window}, buffer_of(mine));
  }
  /// @cond  These overloads only refuse calls.
  // Calls that do not compile, and say what to write instead.
  template <class Pointer, class... A>
    requires std::is_pointer_v<std::remove_cvref_t<Pointer>>
  void add(Pointer&&, A&&...) {
    static_assert(
        rankmesh::detail::never<Pointer>,
        "a pointer does not say how many elements there are: write std::span{pointer, n}");
  }
  template <Memory M>
    requires(!WritableMemory<M>)
  void add(M&&) {
    static_assert(rankmesh::detail::never<M>,
                  "the values are const, but add() changes them: pass values that are not const, "
                  "or memory for this member's part too, as in add(values, mine)");
  }
  /// @endcond

  /// Issues a collective with the buffers that were added since the last collective. Collective
  /// over the group.
  void flush();
  /// Ends the round: issues the remaining buffers and copies the results back. On host memory,
  /// blocks until the collectives are complete. On device memory, makes the stream wait for the
  /// collectives. The next add() begins a new round.
  /// @throws UsageError if the round differs from the first round; TimeoutError if the mesh's
  /// timeout passes.
  void wait();

  /// Returns the number of collectives that were issued in this round.
  [[nodiscard]] std::int64_t issued() const noexcept {
    return static_cast<std::int64_t>(issued_.size());
  }

 private:
  // A buffer that was added. `out` is the same memory as `in` if all members get the result.
  struct Part {
    ConstBuffer in;
    Buffer out;
    bool is_divided;
  };
  // The memory of a collective, which all rounds use.
  struct Flat {
    Tensor in;
    std::optional<Tensor> out;  // of a reduce_scatter
  };
  struct Issued {
    std::vector<Part> parts;  // the results are copied here; empty if nothing is copied
    Work work;
  };
  void add_part(const Part& part);
  void add_divided(const ConstBuffer& values, const Buffer& mine);
  [[nodiscard]] bool fits(const Part& part) const;
  [[nodiscard]] bool needs_copy() const;
  [[nodiscard]] std::int64_t places(const Part& part) const;
  void pack(const Flat& flat) const;
  void unpack(const Issued& issued, const Flat& flat) const;
  const std::shared_ptr<Flat>& flat(std::size_t collective);
  [[nodiscard]] Hash128 contents() const;
  void agree(const Hash128& contents);
  [[nodiscard]] std::int64_t mark_of_collective();

  GroupCoordinator& group_;
  rankmesh::detail::GroupLife life_;
  BucketOptions options_;
  std::vector<Part> added_;  // not issued yet
  std::int64_t added_count_ = 0;
  std::int64_t buffers_ = 0;  // added in this round
  std::vector<Issued> issued_;
  // The memory of each collective of a round; null for a collective that copies nothing.
  std::vector<std::shared_ptr<Flat>> flat_;
  std::vector<Hash128> first_round_;  // the contents of each collective
  std::vector<const void*> memory_;   // of the buffers of the first round
  bool is_first_round_ = true;
};

}  // namespace rankmesh::exchange

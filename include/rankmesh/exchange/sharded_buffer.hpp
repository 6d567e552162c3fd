// SPDX-License-Identifier: BSD-3-Clause
// Tensors of which each member of a group owns a part.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/memory.hpp"
#include "rankmesh/exchange/detail/sharded_memory.hpp"
#include "rankmesh/exchange/named_tensors.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/group/detail/no_group.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh::exchange {

/// Divides tensors over the members of a group, for sharded data parallelism: the weights, the
/// gradients and the state of the optimizer of a model are ShardedBuffers with the same division.
/// docs/sharded.md has a program, and describes the buckets, their memory and their collectives.
///
/// Tensors are numbered from 0. Neighbouring tensors are combined in buckets of about equal size.
/// Each member owns an equal part of each bucket, mine(). A tensor is *whole* on a member that has
/// all of its elements.
///
/// gather() issues the all_gather of the next buckets in advance, and reduce() the reduce_scatter
/// of a bucket whose tensors have all been reduced. If a function waits in device memory,
/// the stream in `ShardedBufferOptions::stream` waits, and the host does not.
///
/// All members must make the same calls in the same order, except for load(), bytes(), tensors()
/// and buckets(). Thread safety: the rules of the group apply.
/// @tparam kind  Whether the memory is on the host or on the current device.
template <Element T, MemoryKind kind = MemoryKind::host>
class ShardedBuffer {
 public:
  /// std::span<T>, or DeviceSpan<T> in device memory.
  using Span = std::conditional_t<kind == MemoryKind::host, std::span<T>, DeviceSpan<T>>;
  /// A span of elements that must not be changed.
  using ConstSpan =
      std::conditional_t<kind == MemoryKind::host, std::span<const T>, DeviceSpan<const T>>;

  /// Creates tensors of zeros. Collective over the group; blocks. Cost: one all_reduce of 32 bytes,
  /// which compares the arguments of the members.
  /// @param group  A group that must outlive the buffer. Afterwards, all functions that may throw
  ///               throw ClosedError.
  /// @param sizes  The number of elements of each tensor.
  /// @throws UsageError if a size is negative, `bytes` is less than 1, `prefetch` is negative, the
  /// tensors have more bytes together than an integer of 64 bits can count, or there is too little
  /// memory.
  /// @throws MismatchError on all members if the members pass different arguments; the error lists
  /// them. If the arguments are invalid on some members only, the other members throw this error.
  template <rankmesh::detail::Integers Sizes>
  ShardedBuffer(GroupCoordinator& group, const Sizes& sizes, ShardedBufferOptions options = {})
      : memory_{group,
                {std::ranges::begin(sizes), std::ranges::end(sizes)},
                DataTypeOf<T>::value,
                kind,
                options} {}
  /// Does the same for a list of sizes in braces.
  ShardedBuffer(GroupCoordinator& group, std::initializer_list<std::int64_t> sizes,
                ShardedBufferOptions options = {})
      : ShardedBuffer{group, std::span{sizes}, options} {}
  /// @cond  These overloads only refuse calls.
  template <class NoGroup, rankmesh::detail::Integers Sizes>
    requires(!std::derived_from<NoGroup, GroupCoordinator>)
  ShardedBuffer(NoGroup&, const Sizes& sizes, ShardedBufferOptions options = {})
      : ShardedBuffer{rankmesh::detail::no_group(), sizes, options} {
    static_assert(rankmesh::detail::never<NoGroup>,
                  "a ShardedBuffer needs a group: write ShardedBuffer<T>{mesh[\"dp\"], sizes}");
  }
  template <class NoGroup>
    requires(!std::derived_from<NoGroup, GroupCoordinator>)
  ShardedBuffer(NoGroup&, std::initializer_list<std::int64_t> sizes,
                ShardedBufferOptions options = {})
      : ShardedBuffer{rankmesh::detail::no_group(), sizes, options} {
    static_assert(rankmesh::detail::never<NoGroup>,
                  "a ShardedBuffer needs a group: write ShardedBuffer<T>{mesh[\"dp\"], sizes}");
  }
  /// @endcond
  /// Creates another buffer with the same tensors and buckets, for example for the gradients or
  /// for a state of the optimizer. The new buffer may have another element type. It uses the same
  /// stream; `options.bytes` and `options.stream` are ignored. Collective over the group, like
  /// the constructor.
  template <Element U = T>
  [[nodiscard]] ShardedBuffer<U, kind> like(ShardedBufferOptions options = {}) const {
    return ShardedBuffer<U, kind>{detail::ShardedMemory{memory_, DataTypeOf<U>::value, options}};
  }

  /// Returns the number of tensors.
  [[nodiscard]] std::int64_t tensors() const noexcept { return memory_.tensors(); }
  /// Returns the number of buckets.
  [[nodiscard]] std::int64_t buckets() const noexcept { return memory_.buckets(); }
  /// Returns the number of bytes that this member has currently allocated.
  [[nodiscard]] std::int64_t bytes() const noexcept { return memory_.bytes(); }

  /// Sets the values of a tensor: copies those elements of `values` that belong to this member, or
  /// all of them with `keep_whole`. All members must load the same values. Local. On device memory,
  /// the copy is queued on the stream.
  /// @param values  The whole tensor.
  /// @throws UsageError if `values` has a different number of elements than the tensor.
  template <Memory M>
    requires rankmesh::detail::SameElements<M, std::span<T>> &&
             (rankmesh::detail::HasKindAtRunTime<M> ||
              DeviceMemory<M> == (kind == MemoryKind::device))
  void load(std::int64_t tensor, M&& values) {
    const auto in = buffer_of(values);
    memory_.load(tensor, {in.data, in.count, in.type, in.kind});
  }
  /// @cond  These overloads only refuse calls.
  // Calls that do not compile, and say what to write instead.
  template <Memory M>
    requires(!rankmesh::detail::SameElements<M, std::span<T>>)
  void load(std::int64_t, M&&) {
    static_assert(rankmesh::detail::never<M>,
                  "the values must have the element type of the buffer: convert them first");
  }
  template <class Pointer, class... A>
    requires std::is_pointer_v<std::remove_cvref_t<Pointer>>
  void load(std::int64_t, Pointer&&, A&&...) {
    static_assert(
        rankmesh::detail::never<Pointer>,
        "a pointer does not say how many elements there are: write std::span{pointer, n}");
  }
  /// @endcond

  /// Returns this member's part of a bucket, which includes zeros as padding. The part has the same
  /// size on all members, and in all buffers with the same division. The function first waits for
  /// operations in flight that use the part. The memory stays valid as long as the buffer exists.
  /// With `keep_whole`, this memory is a part of the whole tensors, so local() overwrites it.
  /// @throws UsageError if only some tensors of the bucket have been reduced; with `keep_whole`
  /// also if local() has been called and no tensor has been reduced.
  [[nodiscard]] Span mine(std::int64_t bucket) { return span_of(memory_.mine(bucket)); }
  /// Tells the buffer that the members have changed their parts. Whole tensors that gather() has
  /// returned become invalid; the next gather() returns the new values. With `keep_whole`,
  /// issues the all_gathers of all buckets; gather() waits for them. Collective over the group;
  /// does not block.
  void changed() { memory_.changed(); }

  /// Returns a whole tensor. If this member does not have its values, the function issues the
  /// all_gather of its bucket and waits for it. It also issues the all_gathers of the next
  /// `prefetch` buckets. The memory is valid until release() or changed(). Collective over
  /// the group.
  [[nodiscard]] ConstSpan gather(std::int64_t tensor) {
    const Span whole = span_of(memory_.gather(tensor));
    return {whole.data(), whole.size()};
  }
  /// Tells the buffer that the program does not need the whole tensor now. When all tensors of a
  /// bucket have been released, its memory may be used for another bucket. On device memory, the
  /// work that uses the tensor must already be on the stream. Does nothing with `keep_whole`.
  /// Collective over the group; does not communicate.
  void release(std::int64_t tensor) { memory_.release(tensor); }

  /// Returns memory for this member's own values of a whole tensor, for example for a gradient. The
  /// values are zeros at first. They are kept until reduce(), so that a program can add up the
  /// gradients of several micro-batches. If no memory is free, the function waits for the oldest
  /// reduce_scatter and uses the memory of its bucket. Collective over the group.
  /// @throws UsageError if the tensor has been reduced and other tensors of its bucket have not.
  [[nodiscard]] Span local(std::int64_t tensor) { return span_of(memory_.local(tensor)); }
  /// Tells the buffer that this member's values of a tensor are complete. The last call for the
  /// tensors of a bucket issues the reduce_scatter of the bucket, whose result mine() returns.
  /// Afterwards, local() begins with zeros again. Collective over the group; does not block.
  /// @throws UsageError if the tensor has been reduced and other tensors of its bucket have not.
  void reduce(std::int64_t tensor) { memory_.reduce(tensor); }

  /// Returns this member's parts of all tensors, for save_checkpoint() and KeptTensors::keep(). The
  /// places are on the members of the group. Waits as mine() does; the memory is valid until the
  /// next operation on the buffer. Collective over the group; does not communicate.
  /// @param name  The tensors are called `NAME.0`, `NAME.1`, and so on.
  [[nodiscard]] std::vector<SavedTensor> saved(const std::string& name) {
    std::vector<SavedTensor> tensors;
    for (const auto& part : memory_.parts())
      tensors.emplace_back(SavedTensor{name + "." + std::to_string(tensors.size()), part.place})
          .source.memory = part.memory.as_input();
    return tensors;
  }
  /// Returns the same parts, for load_checkpoint() and KeptTensors::restore(). Call changed()
  /// afterwards.
  [[nodiscard]] std::vector<LoadedTensor> loaded(const std::string& name) {
    std::vector<LoadedTensor> tensors;
    for (const auto& part : memory_.parts())
      tensors.emplace_back(LoadedTensor{name + "." + std::to_string(tensors.size()), part.place})
          .target.memory = part.memory;
    return tensors;
  }

  /// Waits for all operations in flight. On host memory, blocks. On device memory, makes the stream
  /// wait.
  /// @throws TimeoutError if the mesh's timeout passes.
  void wait() { memory_.wait(); }

 private:
  template <Element U, MemoryKind other>
  friend class ShardedBuffer;
  explicit ShardedBuffer(detail::ShardedMemory memory) : memory_{std::move(memory)} {}
  static Span span_of(const Buffer& buffer) {
    return {reinterpret_cast<T*>(buffer.data), static_cast<std::size_t>(buffer.count)};
  }

  detail::ShardedMemory memory_;
};

}  // namespace rankmesh::exchange

// SPDX-License-Identifier: BSD-3-Clause
// Operations that allocate and return their results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <ranges>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/group/value_operations.hpp"

namespace rankmesh {

/// The values of all members in group order, and the position of each member's values. Some v-forms
/// (operations with blocks of different sizes) exchange the sizes of the blocks themselves. They
/// return this type.
template <class T>
struct GatheredBlocks {
  std::vector<T> values;  ///< The values of all members, in group order.
  Blocks blocks;          ///< one block per member

  /// Returns the values of one member.
  [[nodiscard]] std::span<const T> operator[](RankInGroup member) const {
    const auto k = static_cast<std::size_t>(member.value());
    return std::span{values}.subspan(static_cast<std::size_t>(blocks.displacements().at(k)),
                                     static_cast<std::size_t>(blocks.counts().at(k)));
  }
};

/// Adds the operations that return their results in a std::vector in host memory. The forms with an
/// output allocate nothing, so a loop that runs often should use them. The elements of an array
/// with several dimensions are returned one after another, in row-major order. The constructor of
/// the vector sets all elements to zero before the operation.
class ReturnedResults : public ValueOperations {
 public:
  using ValueOperations::all_gather;
  using ValueOperations::all_gather_v;
  using ValueOperations::all_reduce;
  using ValueOperations::all_to_all;
  using ValueOperations::all_to_all_v;
  using ValueOperations::broadcast;
  using ValueOperations::gather;
  using ValueOperations::gather_v;
  using ValueOperations::reduce;
  using ValueOperations::reduce_scatter;
  using ValueOperations::reduce_scatter_v;
  using ValueOperations::scatter;
  using ValueOperations::scatter_v;

  /// Concatenates the `in` of all members in group order, and returns the result on all members.
  template <HostMemory In>
  [[nodiscard]] auto all_gather(In&& in) {
    return returned<In>(elements(in) * members(), [&](auto out) { all_gather(in, out); });
  }
  /// Returns the values of all members in group order, on all members.
  template <Value T>
  [[nodiscard]] std::vector<T> all_gather(const T& value) {
    return returned<std::span<T>>(members(), [&](auto out) { all_gather(one(value), out); });
  }

  /// Concatenates the `in` of all members at the root, in group order.
  /// @return The result at the root; an empty vector on all other members.
  template <HostMemory In>
  [[nodiscard]] auto gather(In&& in, RankInGroup root) {
    return returned<In>(at(root) * elements(in) * members(),
                        [&](auto out) { gather(in, out, root); });
  }
  /// Returns the values of all members at the root, in group order; an empty vector elsewhere.
  template <Value T>
  [[nodiscard]] std::vector<T> gather(const T& value, RankInGroup root) {
    return returned<std::span<T>>(at(root) * members(),
                                  [&](auto out) { gather(one(value), out, root); });
  }

  /// Sends value k of the root's `in` to member k, and returns this member's value. `in` has size()
  /// elements at the root, and is ignored on all other members.
  template <HostMemory In>
  [[nodiscard]] auto scatter(In&& in, RankInGroup root) {
    using T = std::ranges::range_value_t<In>;
    static_assert(!std::is_array_v<T>, "write scatter(in, out, root) for built-in arrays");
    T value{};
    scatter(in, one(value), root);
    return value;
  }

  /// Reduces the `in` of all members element by element, and returns block k of the result on
  /// member k. The number of elements of `in` must be a multiple of size().
  template <HostMemory In>
    requires ReducibleMemory<In>
  [[nodiscard]] auto reduce_scatter(In&& in, ReduceOp op = ReduceOp::sum) {
    return returned<In>(elements(in) / members(), [&](auto out) { reduce_scatter(in, out, op); });
  }

  /// Sends block k of `in` to member k, and returns the blocks that this member receives, in group
  /// order. The number of elements of `in` must be a multiple of size().
  template <HostMemory In>
  [[nodiscard]] auto all_to_all(In&& in) {
    return returned<In>(elements(in), [&](auto out) { all_to_all(in, out); });
  }

  /// Reduces a container that is moved into the call, and returns it.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableReducibleMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> all_reduce(M&& values, ReduceOp op = ReduceOp::sum) {
    all_reduce(values, op);
    return std::forward<M>(values);
  }
  /// Returns the root's values. The container is moved into the call and out of it.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> broadcast(M&& values, RankInGroup root) {
    broadcast(values, root);
    return std::forward<M>(values);
  }
  /// Returns the reduced values at the root. On other members, the result has undefined values.
  template <HostMemory M>
    requires(!detail::is_borrowed<M> && WritableReducibleMemory<M>)
  [[nodiscard]] std::remove_cvref_t<M> reduce(M&& values, RankInGroup root,
                                              ReduceOp op = ReduceOp::sum) {
    reduce(values, root, op);
    return std::forward<M>(values);
  }

  /// Concatenates the `in` of all members, which may have different numbers of elements. All
  /// members get the values and the sizes. Cost: an all_gather of 8 bytes per member before the
  /// values.
  template <HostMemory In>
  [[nodiscard]] auto all_gather_v(In&& in) {
    Blocks blocks{all_gather(count_of(in))};
    auto values =
        returned_rows<In>(total(blocks), [&](auto out) { all_gather_v(in, out, blocks); });
    return gathered(std::move(values), std::move(blocks));
  }
  /// Concatenates the `in` of all members at the root; they may have different numbers of elements.
  /// Cost: an all_gather of 8 bytes per member before the values.
  /// @return The values and the sizes at the root. On all other members, only the sizes.
  template <HostMemory In>
  [[nodiscard]] auto gather_v(In&& in, RankInGroup root) {
    Blocks blocks{all_gather(count_of(in))};
    auto values = returned_rows<In>(at(root) * total(blocks),
                                    [&](auto out) { gather_v(in, out, blocks, root); });
    return gathered(std::move(values), std::move(blocks));
  }
  /// Sends block k of the root's `in` to member k, and returns this member's block. `in` and
  /// `blocks` are ignored on all other members, which may pass `{}` for `blocks`. Cost: a broadcast
  /// of 8 bytes per member before the values.
  template <HostMemory In>
  [[nodiscard]] auto scatter_v(In&& in, const Blocks& blocks, RankInGroup root) {
    const Blocks sizes = sizes_of(blocks, root);
    const auto mine =
        static_cast<std::size_t>(sizes.counts()[static_cast<std::size_t>(self_.value())]);
    return returned_rows<In>(
        mine, [&](auto out) { scatter_v(in, out, self_ == root ? blocks : sizes, root); });
  }
  /// Reduces the `in` of all members element by element, and returns block k of the result on
  /// member k. All members pass the same blocks.
  template <HostMemory In>
    requires ReducibleMemory<In>
  [[nodiscard]] auto reduce_scatter_v(In&& in, const Blocks& blocks, ReduceOp op = ReduceOp::sum) {
    const auto k = static_cast<std::size_t>(self_.value());
    const std::int64_t mine = k < blocks.counts().size() ? blocks.counts()[k] : 0;
    return returned_rows<In>(mine > 0 ? static_cast<std::size_t>(mine) : 0,
                             [&](auto out) { reduce_scatter_v(in, out, blocks, op); });
  }
  /// Sends block k of `in` to member k, and returns the blocks that this member receives, in group
  /// order. Only the sender knows the size of a block. Cost: an all_to_all of 8 bytes per member
  /// before the values.
  template <HostMemory In>
  [[nodiscard]] auto all_to_all_v(In&& in, const Blocks& in_blocks) {
    Blocks blocks{all_to_all(in_blocks.counts())};
    auto values = returned_rows<In>(total(blocks),
                                    [&](auto out) { all_to_all_v(in, out, in_blocks, blocks); });
    return gathered(std::move(values), std::move(blocks));
  }

 protected:
  using ValueOperations::ValueOperations;
  ~ReturnedResults() = default;

 private:
  // The type of the elements of a result. A vector cannot hold built-in arrays.
  template <class In>
  using ResultOf =
      std::conditional_t<std::is_array_v<std::ranges::range_value_t<In>>,
                         LeafOf<std::ranges::range_value_t<In>>, std::ranges::range_value_t<In>>;
  template <class In>
  static constexpr std::size_t bytes_of_element = sizeof(std::ranges::range_value_t<In>);
  template <class In>
  static constexpr std::size_t results_per_element = bytes_of_element<In> / sizeof(ResultOf<In>);

  // Returns `count` elements of In that `fill` writes to a span. A std::vector<bool> is packed, so
  // its values are received in bytes.
  template <class In, class Fill>
  static std::vector<ResultOf<In>> returned_rows(std::size_t count, Fill&& fill) {
    using T = ResultOf<In>;
    if constexpr (std::is_same_v<T, bool>) {
      auto flags = std::make_unique<bool[]>(count);
      fill(std::span<bool>{flags.get(), count});
      return std::vector<bool>(flags.get(), flags.get() + count);
    } else {
      std::vector<T> results(count * results_per_element<In>);
      if constexpr (results_per_element<In> == 1)
        fill(std::span<T>{results});
      else
        fill(std::span<std::ranges::range_value_t<In>>{
            reinterpret_cast<std::ranges::range_value_t<In>*>(results.data()), count});
      return results;
    }
  }
  template <class In, class Fill>
  static std::vector<ResultOf<In>> returned(std::size_t count, Fill&& fill) {
    return returned_rows<In>(count, std::forward<Fill>(fill));
  }
  template <class T>
  static GatheredBlocks<T> gathered(std::vector<T> values, Blocks blocks) {
    return {std::move(values), std::move(blocks)};
  }
  [[nodiscard]] std::size_t members() const { return static_cast<std::size_t>(size_); }
  // 1 at the root, and 0 on all other members.
  [[nodiscard]] std::size_t at(RankInGroup root) const { return self_ == root ? 1 : 0; }
  template <class In>
  static std::size_t elements(const In& in) {
    return static_cast<std::size_t>(std::ranges::size(in));
  }
  template <class In>
  static std::int64_t count_of(const In& in) {
    return static_cast<std::int64_t>(std::ranges::size(in));
  }
  static std::size_t total(const Blocks& blocks) {
    const auto& counts = blocks.counts();
    return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }
  // Returns the root's sizes on all members.
  Blocks sizes_of(const Blocks& blocks, RankInGroup root) {
    if (self_ == root) require_blocks(blocks.counts().size());
    std::vector<std::int64_t> counts = blocks.counts();
    counts.resize(members());  // other members may have passed none
    broadcast(std::span{counts}, root);
    return Blocks{counts};
  }
};

}  // namespace rankmesh

// SPDX-License-Identifier: BSD-3-Clause
// Results that operations allocate and return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "rankmesh/base/index.hpp"
#include "rankmesh/base/memory.hpp"
#include "rankmesh/transport/blocks.hpp"

namespace rankmesh {

/// A result that an operation on host memory In allocates and returns. The forms with an output
/// allocate nothing, so a loop that runs often should use them. The elements of an array with
/// several dimensions are returned one after another, in row-major order. The constructor of the
/// vector sets all elements to zero before the operation.
template <HostMemory In>
using Returned =
    std::vector<std::conditional_t<std::is_array_v<ValueOf<In>>, LeafOf<ValueOf<In>>, ValueOf<In>>>;

/// The values of all members in group order, and the position of each member's values. Some v-forms
/// (operations with blocks of different sizes) exchange the sizes of the blocks themselves. They
/// return this type.
template <class T>
struct GatheredBlocks {
  std::vector<T> values;  ///< The values of all members, in group order.
  Blocks blocks;          ///< one block per member

  /// The values of one member. A std::vector<bool> is packed, so it has no spans.
  using Block = std::conditional_t<std::is_same_v<T, bool>, std::vector<bool>, std::span<const T>>;

  /// Returns the values of one member.
  [[nodiscard]] Block operator[](RankInGroup member) const {
    const auto k = static_cast<std::size_t>(member.value());
    const auto first = values.begin() + blocks.displacements().at(k);
    return Block(first, first + blocks.counts().at(k));
  }
};
/// What the v-forms that exchange the sizes return for host memory In.
template <HostMemory In>
using ReturnedBlocks = GatheredBlocks<typename Returned<In>::value_type>;

namespace detail {

/// Returns `count` elements of In that `fill` writes to a span. A std::vector<bool> is packed, so
/// its values are received in bytes.
template <class In, class Fill>
Returned<In> returned(std::size_t count, Fill&& fill) {
  using Element = ValueOf<In>;
  using T = typename Returned<In>::value_type;
  static_assert(std::is_default_constructible_v<T>,
                "a result has elements before the operation writes them: give their type a default "
                "constructor, or pass an output");
  const std::size_t size = count * (sizeof(Element) / sizeof(T));
  const auto filled = [&](T* data) {
    fill(std::span<Element>{reinterpret_cast<Element*>(data), count});
    return data;
  };
  if constexpr (std::is_same_v<T, bool>) {
    const auto flags = std::make_unique<bool[]>(size);
    return Returned<In>(filled(flags.get()), flags.get() + size);
  } else {
    Returned<In> results(size);
    filled(results.data());
    return results;
  }
}
inline std::size_t total(const Blocks& blocks) {
  const auto& counts = blocks.counts();
  return static_cast<std::size_t>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
}

}  // namespace detail

}  // namespace rankmesh

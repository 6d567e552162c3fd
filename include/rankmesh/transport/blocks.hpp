// SPDX-License-Identifier: BSD-3-Clause
// The blocks of a buffer, one per member of a group.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <span>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/layout/slice.hpp"

namespace rankmesh {

namespace detail {
/// A range of integers of any type.
template <class R>
concept Integers =
    std::ranges::forward_range<const R> && std::integral<std::ranges::range_value_t<const R>> &&
    !std::same_as<std::ranges::range_value_t<const R>, bool>;
}  // namespace detail

/// Divides a buffer into blocks. Block k belongs to member k of the group. Each block has a count
/// and a displacement from the beginning of the buffer, both in elements. Counts may be 0.
class Blocks {
 public:
  /// Creates no blocks, for members whose blocks are ignored.
  Blocks() = default;
  /// Creates blocks that follow each other without gaps. Implicit, so that operations accept
  /// counts.
  /// @param counts  One count per member, in elements: integers of any type.
  template <detail::Integers Counts>
  Blocks(const Counts& counts) : counts_(std::ranges::begin(counts), std::ranges::end(counts)) {
    std::int64_t total = 0;
    for (const std::int64_t count : counts_) {
      displacements_.push_back(total);
      total += count;
    }
  }
  /// Does the same for a list of counts in braces.
  Blocks(std::initializer_list<std::int64_t> counts) : Blocks{std::span{counts}} {}
  /// Creates blocks at the given displacements.
  /// @param counts, displacements  One count and one displacement per member, in elements.
  template <detail::Integers Counts, detail::Integers Displacements>
  Blocks(const Counts& counts, const Displacements& displacements)
      : counts_(std::ranges::begin(counts), std::ranges::end(counts)),
        displacements_(std::ranges::begin(displacements), std::ranges::end(displacements)) {}
  /// Creates the blocks of a SlicedAxis.
  /// @param blocks  Where they are when they follow each other.
  /// @param rows, units  See rows() and units().
  Blocks(Blocks blocks, std::int64_t rows, std::int64_t units) : Blocks{std::move(blocks)} {
    rows_ = rows;
    units_ = units;
  }

  /// Returns blocks of `n` elements whose sizes differ by at most 1; see Slice.
  static Blocks even(std::int64_t n, std::int64_t members) {
    std::vector<std::int64_t> counts;
    for (std::int64_t k = 0; k < members; ++k) counts.push_back(Slice::of(n, members, k).size());
    return Blocks{counts};
  }
  /// Returns blocks whose sizes differ by at most 1, one for each member of a group:
  /// `Blocks::even(n, mesh["dp"])`.
  template <GroupLike G>
  static Blocks even(std::int64_t n, const G& group) {
    return even(n, group.size());
  }

  /// Returns the number of elements of each block.
  [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }
  /// Returns where each block begins, in elements.
  [[nodiscard]] const std::vector<std::int64_t>& displacements() const { return displacements_; }
  /// Returns how many rows the array has of which each block has a part: 0 unless the blocks come
  /// from a SlicedAxis. With more than one row, the displacements say where the blocks are when
  /// they follow each other, and not where they are in the array.
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  /// Returns in how many parts the blocks of a SlicedAxis count each element, for messages.
  [[nodiscard]] std::int64_t units() const { return units_; }

 private:
  std::vector<std::int64_t> counts_;
  std::vector<std::int64_t> displacements_;
  std::int64_t rows_ = 0, units_ = 1;
};

/// Returns block k of a buffer, or the whole buffer if `blocks` is null.
template <class Byte>
BasicBuffer<Byte> block_of(const BasicBuffer<Byte>& buffer, const Blocks* blocks, std::size_t k) {
  return blocks == nullptr ? buffer : buffer.slice(blocks->displacements()[k], blocks->counts()[k]);
}

}  // namespace rankmesh

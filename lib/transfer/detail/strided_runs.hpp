// SPDX-License-Identifier: BSD-3-Clause
// The one iterator over elements that lie in contiguous runs at equal distances: the elements of a
// message, and the elements of an array with gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "rankmesh/base/data_type.hpp"
#include "rankmesh/transfer/plan.hpp"

namespace rankmesh::detail {

/// Contiguous runs at equal distances. All numbers are elements.
struct Strip {
  std::int64_t source = 0, target = 0;            ///< The offsets of the first run.
  std::int64_t length = 0;                        ///< The length of each run.
  std::int64_t count = 1;                         ///< The number of runs.
  std::int64_t source_step = 0, target_step = 0;  ///< The distances between the runs.
  [[nodiscard]] std::int64_t elements() const { return length * count; }
};

/// The elements of blocks, which are numbered from 0. Neighbouring blocks with the same outer loops
/// form a group. The elements of a group are those of all its blocks in a few turns (iterations) of
/// these loops, then those in the next turns. In this way they follow the rows of an array whose
/// columns are divided into many blocks. The order depends only on the blocks, so the sender and
/// the receiver of a message use the same order.
class StridedRuns {
 public:
  StridedRuns() = default;
  /// @param blocks  They must exist, and stay where they are, as long as this object.
  explicit StridedRuns(std::span<const TransferBlock> blocks);

  /// Calls use(strip) for the strips of `count` elements, from the element number `first` on, in
  /// order. If `use` returns a bool, false ends the loop.
  template <class Use>
  void for_each(std::int64_t first, std::int64_t count, Use&& use) const {
    auto group = std::ranges::upper_bound(groups_, first, {}, &Group::first) - 1;
    for (Visit<Use> visit{first - group->first, count, use}; visit.left > 0; ++group)
      visit.group(*group);
  }

 private:
  static constexpr std::int64_t turns_of_group = 16;

  struct Group {
    std::span<const TransferBlock> blocks;
    std::size_t outer;             // the number of equal outermost loops
    std::int64_t first, elements;  // the number of the first element, and how many there are
  };

  template <class Use>
  struct Visit {
    std::int64_t skip;  // elements to leave out
    std::int64_t left;  // elements to use after these
    Use& use;

    void group(const Group& g) {
      const TransferBlock& block = g.blocks.front();
      if (g.outer > 0)
        shared_loops(g, 0, g.elements, 0, 0);
      else
        loops(block, 0, block.loops.empty() ? 1 : block.loops.front().count, 0, 0);
    }

   private:
    // Leaves out whole turns of `elements` elements each, and returns how many.
    std::int64_t skip_turns(std::int64_t elements, std::int64_t most) {
      if (skip < elements) return 0;
      const std::int64_t turns = std::min(skip / elements, most);
      skip -= turns * elements;
      return turns;
    }
    static std::int64_t elements_of_turn(const TransferBlock& block, std::size_t loop) {
      std::int64_t elements = block.length;
      while (++loop < block.loops.size()) elements *= block.loops[loop].count;
      return elements;
    }

    // The loops that all blocks of a group share. In the innermost of them, the blocks take turns.
    void shared_loops(const Group& g, std::size_t level, std::int64_t elements, std::int64_t source,
                      std::int64_t target) {
      const TransferLoop& loop = g.blocks.front().loops[level];
      elements /= loop.count;
      const bool is_innermost = level + 1 == g.outer;
      const std::int64_t step = is_innermost ? turns_of_group : 1;
      for (std::int64_t i = step * skip_turns(elements * step, loop.count / step);
           i < loop.count && left > 0; i += step) {
        const std::int64_t s = source + i * loop.source_stride, t = target + i * loop.target_stride;
        if (!is_innermost)
          shared_loops(g, level + 1, elements, s, t);
        else
          for (const TransferBlock& block : g.blocks)
            loops(block, level, std::min(step, loop.count - i), s, t);
      }
    }

    // `count` turns of a loop of one block, and all turns of the loops in it.
    void loops(const TransferBlock& block, std::size_t level, std::int64_t count,
               std::int64_t source, std::int64_t target) {
      if (level + 1 >= block.loops.size()) return runs(block, count, source, target);
      const TransferLoop& loop = block.loops[level];
      for (std::int64_t i = skip_turns(elements_of_turn(block, level), count);
           i < count && left > 0; ++i)
        loops(block, level + 1, block.loops[level + 1].count, source + i * loop.source_stride,
              target + i * loop.target_stride);
    }

    // `count` turns of the innermost loop of a block.
    void runs(const TransferBlock& block, std::int64_t count, std::int64_t source,
              std::int64_t target) {
      const TransferLoop loop = block.loops.empty() ? TransferLoop{} : block.loops.back();
      Strip strip{.source_step = loop.source_stride, .target_step = loop.target_stride};
      for (std::int64_t i = skip_turns(block.length, count); i < count && left > 0;
           i += strip.count) {
        strip.source = block.source + source + i * loop.source_stride + skip;
        strip.target = block.target + target + i * loop.target_stride + skip;
        strip.length = std::min(block.length - skip, left);
        strip.count = strip.length < block.length ? 1 : std::min(count - i, left / block.length);
        skip = 0;
        left -= strip.elements();
        if constexpr (std::is_same_v<decltype(use(strip)), bool>) {
          if (!use(strip)) left = 0;
        } else {
          use(strip);
        }
      }
    }
  };

  std::vector<Group> groups_;  // without elements, there are none
};

/// The gaps between the elements of an array: the places in memory of the elements of a dense
/// row-major array of the same shape.
class ArrayGaps {
 public:
  ArrayGaps() = default;
  ArrayGaps(ArrayGaps&&) noexcept = default;  // not copied, because the runs refer to the block
  ArrayGaps& operator=(ArrayGaps&&) noexcept = default;
  /// @param strides  One per axis, or none for a dense array.
  void set(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);
  /// Returns whether there are none.
  [[nodiscard]] bool is_empty() const { return block_.empty(); }
  /// Returns the number of elements of the innermost axes, which have no gaps between them.
  [[nodiscard]] std::int64_t inner() const { return block_.front().length; }
  /// Calls use(place, count) for each piece of the elements from `offset` on that is contiguous in
  /// memory. There must be gaps.
  template <class Use>
  void for_each(std::int64_t offset, std::int64_t count, Use&& use) const {
    runs_.for_each(offset, count, [&](const Strip& strip) {
      for (std::int64_t i = 0; i < strip.count; ++i)
        use(strip.source + i * strip.source_step, strip.length);
    });
  }

 private:
  std::vector<TransferBlock> block_;  // one, with the memory as the source; none without gaps
  StridedRuns runs_;
};

/// An array in memory, with or without gaps, whose elements are found by their offsets in a dense
/// array. It is a view, made where it is needed.
class ArrayView {
 public:
  /// @param gaps  Null for a dense array.
  ArrayView(std::byte* data, DataType type, const ArrayGaps* gaps = nullptr)
      : data_{data},
        gaps_{gaps != nullptr && gaps->is_empty() ? nullptr : gaps},
        width_{static_cast<std::int64_t>(size_of(type))},
        type_{type} {}

  [[nodiscard]] DataType type() const { return type_; }
  /// Returns the size of an element.
  [[nodiscard]] std::int64_t width() const { return width_; }
  /// Returns whether equal distances of offsets are equal distances in memory.
  [[nodiscard]] bool is_dense() const { return gaps_ == nullptr; }
  /// Returns the address of an element of a dense array.
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset * width_; }
  /// Returns the smallest size in bytes of a piece of for_each(), without pieces that the ends of
  /// the range cut. A dense array is a single piece.
  [[nodiscard]] std::int64_t bytes_of_piece() const {
    return is_dense() ? std::numeric_limits<std::int64_t>::max() : gaps_->inner() * width_;
  }
  /// Calls use(address, count) for each piece of the elements from `offset` on that is contiguous
  /// in memory.
  template <class Use>
  void for_each(std::int64_t offset, std::int64_t count, Use&& use) const {
    if (is_dense()) return use(at(offset), count);
    gaps_->for_each(offset, count, [&](std::int64_t place, std::int64_t n) { use(at(place), n); });
  }

 private:
  std::byte* data_;
  const ArrayGaps* gaps_;
  std::int64_t width_;
  DataType type_;
};

}  // namespace rankmesh::detail

// SPDX-License-Identifier: BSD-3-Clause
// This rank's elements of a tensor in memory with or without gaps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "rankmesh/base/data_type.hpp"

namespace rankmesh::exchange::detail {

/// The gaps between the elements of an array, or none.
class ArrayGaps {
 public:
  /// @param strides  One per axis, or none for a dense array.
  void set(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
    clear();
    if (strides.empty()) return;
    std::int64_t dense = 1;
    std::size_t axis = shape.size();
    while (axis > 0 && (strides[axis - 1] == dense || shape[axis - 1] == 1)) dense *= shape[--axis];
    if (axis == 0) return;
    inner_ = dense;
    shape_.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
    strides_.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  /// Makes the array dense, and keeps the memory of this object.
  void clear() {
    inner_ = 1;
    shape_.clear();
    strides_.clear();
  }
  /// Returns whether the array is dense.
  [[nodiscard]] bool is_empty() const { return shape_.empty(); }
  /// Returns the number of elements of the innermost axes, which have no gaps between them.
  [[nodiscard]] std::int64_t inner() const { return inner_; }
  /// Stores the stride of each axis of an array of this shape.
  void store_strides(std::span<const std::int64_t> shape, std::int64_t* strides) const {
    std::int64_t dense = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; dense *= shape[axis])
      strides[axis] = axis < strides_.size() ? strides_[axis] : dense;
  }

  /// Calls use(place, count) for each piece of the elements from `offset` on that is contiguous in
  /// memory. There must be gaps.
  template <class Use>
  void for_each(std::int64_t offset, std::int64_t count, Use&& use) const {
    while (count > 0) {
      std::int64_t place = offset % inner_;
      const std::int64_t n = std::min(count, inner_ - place);
      std::int64_t rest = offset / inner_;
      for (std::size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
        place += rest % shape_[axis] * strides_[axis];
      use(place, n);
      offset += n;
      count -= n;
    }
  }

 private:
  std::int64_t inner_ = 1;
  std::vector<std::int64_t> shape_, strides_;  // of the outer axes; empty if there are no gaps
};

/// Finds elements by their offsets in a dense row-major array of the same shape. It is a view, made
/// where it is needed.
class LocalArray {
 public:
  /// @param gaps  Null for a dense array.
  LocalArray(std::byte* data, DataType type, const ArrayGaps* gaps = nullptr)
      : data_{data},
        gaps_{gaps != nullptr && gaps->is_empty() ? nullptr : gaps},
        width_{static_cast<std::int64_t>(size_of(type))},
        type_{type} {}

  [[nodiscard]] DataType type() const { return type_; }
  /// Returns whether equal distances of offsets are equal distances in memory.
  [[nodiscard]] bool is_dense() const { return gaps_ == nullptr; }
  /// Returns the address of an element of a dense array.
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset * width_; }
  /// Returns the size of an element.
  [[nodiscard]] std::int64_t width() const { return width_; }

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

}  // namespace rankmesh::exchange::detail

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

/// Finds elements by their offsets in a dense row-major array of the same shape.
class LocalArray {
 public:
  LocalArray() = default;
  /// @param strides  One per axis, or none for a dense array.
  LocalArray(std::byte* data, DataType type, std::span<const std::int64_t> shape,
             std::span<const std::int64_t> strides)
      : data_{data}, type_{type}, width_{static_cast<std::int64_t>(size_of(type))} {
    if (strides.empty()) return;
    std::int64_t dense = 1;
    std::size_t axis = shape.size();
    while (axis > 0 && (strides[axis - 1] == dense || shape[axis - 1] == 1)) dense *= shape[--axis];
    if (axis == 0) return;
    inner_ = dense;
    shape_.assign(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(axis));
    strides_.assign(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(axis));
  }

  [[nodiscard]] DataType type() const { return type_; }
  /// Returns whether equal distances of offsets are equal distances in memory.
  [[nodiscard]] bool is_dense() const { return shape_.empty(); }
  /// Returns the address of the first element.
  [[nodiscard]] std::byte* data() const { return data_; }
  /// Returns the address of an element of a dense array.
  [[nodiscard]] std::byte* at(std::int64_t offset) const { return data_ + offset * width_; }
  /// Returns the size of an element.
  [[nodiscard]] std::int64_t width() const { return width_; }

  /// Returns the smallest size in bytes of a piece of for_each(), without pieces that the ends of
  /// the range cut. A dense array is a single piece.
  [[nodiscard]] std::int64_t bytes_of_piece() const {
    return is_dense() ? std::numeric_limits<std::int64_t>::max() : inner_ * width_;
  }
  /// Stores the stride of each axis of an array of this shape.
  void store_strides(std::span<const std::int64_t> shape, std::int64_t* strides) const {
    std::int64_t dense = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; dense *= shape[axis])
      strides[axis] = axis < strides_.size() ? strides_[axis] : dense;
  }

  /// Calls use(address, count) for each piece of the elements from `offset` on that is contiguous
  /// in memory.
  template <class Use>
  void for_each(std::int64_t offset, std::int64_t count, Use&& use) const {
    if (is_dense()) return use(at(offset), count);
    while (count > 0) {
      std::int64_t place = offset % inner_;
      const std::int64_t n = std::min(count, inner_ - place);
      std::int64_t rest = offset / inner_;
      for (std::size_t axis = shape_.size(); axis-- > 0; rest /= shape_[axis])
        place += rest % shape_[axis] * strides_[axis];
      use(at(place), n);
      offset += n;
      count -= n;
    }
  }

 private:
  std::byte* data_ = nullptr;
  DataType type_ = DataType::uint8;
  std::int64_t width_ = 1;
  std::int64_t inner_ = 1;                     // the elements of the innermost axes, without gaps
  std::vector<std::int64_t> shape_, strides_;  // of the other axes; empty if there are no gaps
};

}  // namespace rankmesh::exchange::detail
